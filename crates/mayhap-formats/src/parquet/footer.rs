//! The footer of a Parquet file, as far as its filters need it: the columns of the schema, and which of them have a filter in each row group.
//!
//! ```text
//! FileMetaData   2 schema: list of elements, depth first      4 row groups: list
//! SchemaElement  1 type   4 name   5 number of children   6 converted type   10 logical type
//! RowGroup       1 columns: list, as the leaves of the schema   3 rows
//! ColumnChunk    1 file (if another)   3 metadata   8, 9 encryption
//! ColumnMetaData 1 type   3 path   14 offset of the filter   15 its length
//! ```

use std::fmt;
use std::sync::Arc;

use mayhap::ItemEncoding;

use super::{ColumnFilter, DecodeError, FilterHome, ParquetError, PhysicalType};
use crate::thrift::{Field, Thrift, Type};

/// The deepest nesting of groups.
const MAX_DEPTH: usize = 64;
/// The paths of all columns together may be this many times as long as the footer, which repeats them for every row group. Without a limit,
/// nested and repeated names would turn few bytes into much memory.
const MAX_PATHS: usize = 4;

/// The parts of a footer that filters need.
#[derive(Debug, Default)]
pub(super) struct Footer {
    columns: Vec<Column>,
    /// The number of rows of every row group.
    pub(super) rows: Vec<u64>,
    /// Each filter shares the path of its column.
    pub(super) filters: Vec<ColumnFilter>,
}

/// A column: a leaf of the schema.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Shared with the filters of the column.
    pub(super) path: Arc<str>,
    physical_type: PhysicalType,
    pub(super) items: ItemEncoding,
}

impl Footer {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut footer = Self::default();
        let mut schema = Schema { longest_paths: bytes.len().saturating_mul(MAX_PATHS), ..Schema::default() };
        let mut have_groups = false;
        let mut thrift = Thrift::new(bytes);
        thrift.structure(|inside, field| match field.id {
            2 if schema.open.is_none() && !have_groups => {
                inside.structures(field, |inside, _| schema.element(inside))
            }
            4 if !have_groups => {
                have_groups = true;
                footer.columns = std::mem::take(&mut schema).finish()?;
                inside.structures(field, |inside, index| footer.row_group(inside, index))
            }
            2 | 4 => {
                Err(DecodeError::BadField { field: "second schema or row group list", got: field.id as u64 })
            }
            _ => inside.skip(field),
        })?;
        if !have_groups {
            return Err(DecodeError::BadField { field: "number of row group lists", got: 0 });
        }
        // A file with encrypted columns has a signature after the structure.
        Ok(footer)
    }

    /// Returns the column with this path.
    pub(super) fn column(&self, path: &str) -> Result<&Column, ParquetError> {
        let mut found = self.columns.iter().filter(|column| *column.path == *path);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (None, _) => Err(ParquetError::UnknownColumn { got: path.to_owned() }),
            (Some(_), Some(_)) => Err(ParquetError::AmbiguousColumn { got: path.to_owned() }),
        }
    }

    fn row_group(&mut self, thrift: &mut Thrift<'_>, index: u64) -> Result<(), DecodeError> {
        let (mut rows, mut chunks) = (0, None);
        thrift.structure(|inside, field| match field.id {
            1 if chunks.is_none() => {
                let mut count = 0;
                inside.structures(field, |inside, column| {
                    count += 1;
                    self.column_chunk(inside, index, column)
                })?;
                chunks = Some(count);
                Ok(())
            }
            1 => Err(DecodeError::BadField { field: "lists of columns in a row group", got: 2 }),
            3 => {
                let got = inside.i64(field)?;
                rows = not_negative("rows of a row group", got)?;
                Ok(())
            }
            _ => inside.skip(field),
        })?;
        match chunks {
            Some(count) if count == self.columns.len() => {}
            other => {
                let got = other.unwrap_or(0) as u64;
                return Err(DecodeError::BadField { field: "columns of a row group", got });
            }
        }
        self.rows.push(rows);
        Ok(())
    }

    fn column_chunk(
        &mut self,
        thrift: &mut Thrift<'_>,
        row_group: u64,
        index: u64,
    ) -> Result<(), DecodeError> {
        let column = usize::try_from(index).ok().and_then(|index| self.columns.get(index));
        let column =
            column.ok_or(DecodeError::BadField { field: "columns of a row group", got: index + 1 })?;
        let (mut home, mut filter) = (FilterHome::Here, None);
        thrift.structure(|inside, field| match field.id {
            1 => {
                home = FilterHome::OtherFile;
                inside.skip(field)
            }
            3 => {
                filter = column.filter_in(inside, field, index)?;
                Ok(())
            }
            8 | 9 => {
                home = FilterHome::Encrypted;
                inside.skip(field)
            }
            _ => inside.skip(field),
        })?;
        if let Some((offset, length)) = filter {
            self.filters.push(ColumnFilter {
                row_group: row_group as usize,
                column: Arc::clone(&column.path),
                physical_type: column.physical_type,
                items: column.items,
                offset,
                length,
                home,
            });
        }
        Ok(())
    }
}

impl Column {
    /// Returns where the filter of this column, number `index`, is according to the metadata. Checks that the metadata belong to this column.
    fn filter_in(
        &self,
        thrift: &mut Thrift<'_>,
        field: Field,
        index: u64,
    ) -> Result<Option<(u64, Option<u32>)>, DecodeError> {
        let (mut kind, mut offset, mut length) = (None, None, None);
        let mut path = Some(&*self.path);
        let mut has_path = false;
        thrift.structure_of(field, |inside, field| match field.id {
            1 => {
                kind = Some(PhysicalType::from_number(inside.i32(field)?)?);
                Ok(())
            }
            3 => {
                has_path = true;
                inside.binaries(field, |name, index| {
                    let dot = if index == 0 { "" } else { "." };
                    path = path
                        .and_then(|rest| rest.strip_prefix(dot))
                        .and_then(|rest| rest.strip_prefix(std::str::from_utf8(name).ok()?));
                    Ok(())
                })
            }
            14 => {
                offset = Some(not_negative("filter offset", inside.i64(field)?)?);
                Ok(())
            }
            15 => {
                let got = not_negative("filter length", inside.i32(field)?.into())?;
                length = Some(got as u32);
                Ok(())
            }
            _ => inside.skip(field),
        })?;
        if kind != Some(self.physical_type) {
            let got = kind.map_or(u64::MAX, |kind| kind as u64);
            return Err(DecodeError::BadField { field: "type of a column in a row group", got });
        }
        // Later versions may leave the path out; the order is enough to identify the column.
        if has_path && path != Some("") {
            return Err(DecodeError::BadField { field: "path in a row group of column", got: index });
        }
        Ok(offset.map(|offset| (offset, length)))
    }
}

fn not_negative(field: &'static str, got: i64) -> Result<u64, DecodeError> {
    u64::try_from(got).map_err(|_| DecodeError::BadField { field, got: got as u64 })
}

/// The schema while it is being read: a tree, depth first. Only the leaves are kept.
#[derive(Default)]
struct Schema {
    columns: Vec<Column>,
    /// The groups around the next element. Each has the number of its remaining children and the start of its name in `path`. Empty
    /// before the root.
    open: Option<Vec<(u32, usize)>>,
    /// The names of those groups, each followed by a dot.
    path: String,
    /// The number of bytes that the remaining paths may take together.
    longest_paths: usize,
}

/// The parts of a schema element that filters need.
#[derive(Default)]
struct Element<'a> {
    kind: Option<PhysicalType>,
    name: &'a [u8],
    children: u32,
    is_text: bool,
    is_unsigned: bool,
}

impl Schema {
    fn element(&mut self, thrift: &mut Thrift<'_>) -> Result<(), DecodeError> {
        let element = Element::read(thrift)?;
        let Some(open) = &mut self.open else {
            // The name of the root is not part of any path.
            self.open = Some(vec![(element.children, 0)]);
            return Ok(());
        };
        // Leave the groups that are complete.
        while let Some(&(0, start)) = open.last() {
            open.pop();
            self.path.truncate(start);
        }
        let stray = DecodeError::BadField { field: "schema elements", got: self.columns.len() as u64 };
        open.last_mut().ok_or(stray)?.0 -= 1;
        let name = std::str::from_utf8(element.name).map_err(|_| DecodeError::BadField {
            field: "name of a column",
            got: self.columns.len() as u64,
        })?;
        match element.kind {
            _ if element.children > 0 => {
                if open.len() == MAX_DEPTH {
                    return Err(DecodeError::BadField {
                        field: "depth of the schema",
                        got: MAX_DEPTH as u64 + 1,
                    });
                }
                open.push((element.children, self.path.len()));
                self.path.push_str(name);
                self.path.push('.');
            }
            Some(physical_type) => {
                let length = self.path.len() + name.len();
                let too_long = DecodeError::BadField { field: "length of all paths", got: length as u64 };
                self.longest_paths = self.longest_paths.checked_sub(length).ok_or(too_long)?;
                self.columns.push(Column {
                    path: format!("{}{name}", self.path).into(),
                    physical_type,
                    items: physical_type.encoding(element.is_text, element.is_unsigned),
                });
            }
            // An empty group.
            None => {}
        }
        Ok(())
    }

    /// Returns the columns, if every group got all its children.
    fn finish(self) -> Result<Vec<Column>, DecodeError> {
        match self.open {
            Some(open) if open.iter().all(|&(children, _)| children == 0) => Ok(self.columns),
            _ => Err(DecodeError::BadField { field: "schema elements", got: self.columns.len() as u64 }),
        }
    }
}

impl<'a> Element<'a> {
    fn read(thrift: &mut Thrift<'a>) -> Result<Self, DecodeError> {
        let mut element = Self::default();
        thrift.structure(|inside, field| {
            match field.id {
                1 => element.kind = Some(PhysicalType::from_number(inside.i32(field)?)?),
                4 => element.name = inside.binary(field)?,
                5 => {
                    let got = not_negative("children of a schema element", inside.i32(field)?.into())?;
                    element.children = got as u32;
                }
                6 => match inside.i32(field)? {
                    // UTF8, ENUM, JSON; UINT_8 to UINT_64.
                    0 | 4 | 19 => element.is_text = true,
                    11..=14 => element.is_unsigned = true,
                    _ => {}
                },
                10 => {
                    let member = inside.union_of(field, "logical type", |inside, member| {
                        if member.id != 10 || member.kind != Type::Struct {
                            return inside.skip(member);
                        }
                        // INTEGER: 1 width, 2 whether it is signed.
                        inside.structure_of(member, |inside, field| {
                            element.is_unsigned |= field.id == 2 && field.kind == Type::False;
                            inside.skip(field)
                        })
                    })?;
                    // STRING, ENUM, JSON.
                    element.is_text |= matches!(member, 1 | 4 | 12);
                }
                _ => inside.skip(field)?,
            }
            Ok(())
        })?;
        Ok(element)
    }
}

impl PhysicalType {
    const ALL: [(Self, &str); 8] = [
        (Self::Boolean, "BOOLEAN"),
        (Self::Int32, "INT32"),
        (Self::Int64, "INT64"),
        (Self::Int96, "INT96"),
        (Self::Float, "FLOAT"),
        (Self::Double, "DOUBLE"),
        (Self::ByteArray, "BYTE_ARRAY"),
        (Self::FixedLenByteArray, "FIXED_LEN_BYTE_ARRAY"),
    ];

    fn from_number(number: i32) -> Result<Self, DecodeError> {
        let found = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number));
        found
            .map(|&(kind, _)| kind)
            .ok_or(DecodeError::BadField { field: "type of a column", got: number as u64 })
    }

    /// How values of this type are encoded before they are hashed.
    const fn encoding(self, is_text: bool, is_unsigned: bool) -> ItemEncoding {
        match self {
            Self::Int32 => ItemEncoding::I32Le,
            Self::Int64 if is_unsigned => ItemEncoding::U64Le,
            Self::Int64 => ItemEncoding::I64Le,
            Self::Float => ItemEncoding::F32Le,
            Self::Double => ItemEncoding::F64Le,
            Self::ByteArray if is_text => ItemEncoding::Utf8,
            Self::ByteArray | Self::FixedLenByteArray | Self::Int96 | Self::Boolean => ItemEncoding::Bytes,
        }
    }
}

/// The names that Parquet uses.
impl fmt::Display for PhysicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}
