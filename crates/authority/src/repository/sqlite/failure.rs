//! Errors of SQLite and of the operating system as reasons of a repository.

use std::io;

use rusqlite::{Error, ErrorCode};

use crate::repository::StoreError;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::SqliteFailure(failure, message) => {
                of_code(failure.code, message.unwrap_or_else(|| failure.to_string()))
            }
            Error::SqlInputError { error, msg, .. } => of_code(error.code, msg),
            // What is stored is not of the kind that the tables demand.
            Error::FromSqlConversionFailure(..) | Error::IntegralValueOutOfRange(..) | Error::InvalidColumnType(..) => {
                StoreError::Damaged(error.to_string())
            }
            other => StoreError::Failed(other.to_string()),
        }
    }
}

fn of_code(code: ErrorCode, text: String) -> StoreError {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        ErrorCode::NotADatabase => StoreError::Foreign,
        // SQLite's general error: our statements are right, so the tables are not those of the schema.
        ErrorCode::DatabaseCorrupt | ErrorCode::Unknown | ErrorCode::ConstraintViolation => StoreError::Damaged(text),
        _ => StoreError::Failed(text),
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => StoreError::NotThere,
            io::ErrorKind::AlreadyExists => StoreError::Exists,
            _ => StoreError::Failed(error.to_string()),
        }
    }
}
