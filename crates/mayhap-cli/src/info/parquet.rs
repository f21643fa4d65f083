//! The filters in a Parquet file.

use std::fs::File;
use std::path::Path;

use mayhap_formats::parquet::ParquetFilters;
use serde::Serialize;

use crate::error::CliError;

/// A Parquet file and its filters. The field names are those of `--json` and must not change.
#[derive(Debug, Serialize)]
pub(super) struct ParquetColumns {
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) row_groups: usize,
    pub(super) columns: Vec<ParquetColumn>,
}

#[derive(Debug, Serialize)]
pub(super) struct ParquetColumn {
    pub(super) row_group: usize,
    pub(super) column: String,
    pub(super) physical_type: String,
    pub(super) items_as: &'static str,
    /// Offset of the filter in the file.
    pub(super) offset: u64,
    /// Its length including the header, if the footer stores it.
    pub(super) bytes: Option<u32>,
}

/// Lists the filters from the footer of `path`; reads nothing else.
pub(super) fn columns(path: &Path) -> Result<ParquetColumns, CliError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|cause| CliError::Read { name: name.clone(), cause })?;
    let filters = ParquetFilters::open(file)
        .map_err(|error| CliError::Input { name: name.clone(), what: error.to_string() })?;
    let columns = filters.filters().iter().map(|filter| ParquetColumn {
        row_group: filter.row_group,
        column: filter.column.to_string(),
        physical_type: filter.physical_type.to_string(),
        items_as: filter.items.name(),
        offset: filter.offset,
        bytes: filter.length,
    });
    let columns = columns.collect();
    Ok(ParquetColumns { file: name, format: "parquet", row_groups: filters.row_groups().len(), columns })
}
