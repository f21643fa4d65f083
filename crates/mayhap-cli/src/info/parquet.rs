//! The filters inside of a Parquet file.

use std::fs::File;
use std::path::Path;

use mayhap::codec::parquet::ParquetFilters;
use serde::Serialize;

use crate::error::CliError;

/// A Parquet file and its filters. The field names are those of `--json`, and a promise.
#[derive(Debug, Serialize)]
pub(super) struct Columns {
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) row_groups: usize,
    pub(super) columns: Vec<Column>,
}

#[derive(Debug, Serialize)]
pub(super) struct Column {
    pub(super) row_group: usize,
    pub(super) column: String,
    pub(super) physical_type: String,
    pub(super) items_as: &'static str,
    /// Where the filter is in the file.
    pub(super) offset: u64,
    /// How long it is with its header, where the footer says so.
    pub(super) bytes: Option<u32>,
}

/// What the footer of `path` says; nothing else is read.
pub(super) fn columns(path: &Path) -> Result<Columns, CliError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|cause| CliError::Read { name: name.clone(), cause })?;
    let filters = ParquetFilters::open(file)
        .map_err(|error| CliError::Input { name: name.clone(), what: error.to_string() })?;
    let columns = filters.filters().iter().map(|filter| Column {
        row_group: filter.row_group,
        column: filter.column.to_string(),
        physical_type: filter.physical_type.to_string(),
        items_as: filter.items.name(),
        offset: filter.offset,
        bytes: filter.length,
    });
    let columns = columns.collect();
    Ok(Columns { file: name, format: "parquet", row_groups: filters.row_groups().len(), columns })
}
