//! MongoDB's error codes, by number and name.
//!
//! Drivers and tools act on the number; people read the name. MongoDB calls a number without a name
//! a "location" and shows it as `Location40324`.

use std::borrow::Cow;
use std::fmt;

/// An error code of MongoDB's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($constant:ident = $number:literal, $name:literal;)*) => {
        impl Code {
            $(
                #[doc = concat!("`", $name, "`.")]
                pub const $constant: Code = Code($number);
            )*

            fn known(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }

            /// Every code with a name, ascending.
            pub const ALL: &'static [Code] = &[$(Code($number),)*];
        }
    };
}

codes! {
    OK = 0, "OK";
    INTERNAL_ERROR = 1, "InternalError";
    BAD_VALUE = 2, "BadValue";
    NO_SUCH_KEY = 4, "NoSuchKey";
    GRAPH_CONTAINS_CYCLE = 5, "GraphContainsCycle";
    HOST_UNREACHABLE = 6, "HostUnreachable";
    HOST_NOT_FOUND = 7, "HostNotFound";
    UNKNOWN_ERROR = 8, "UnknownError";
    FAILED_TO_PARSE = 9, "FailedToParse";
    USER_NOT_FOUND = 11, "UserNotFound";
    UNSUPPORTED_FORMAT = 12, "UnsupportedFormat";
    UNAUTHORIZED = 13, "Unauthorized";
    TYPE_MISMATCH = 14, "TypeMismatch";
    OVERFLOW = 15, "Overflow";
    INVALID_LENGTH = 16, "InvalidLength";
    PROTOCOL_ERROR = 17, "ProtocolError";
    AUTHENTICATION_FAILED = 18, "AuthenticationFailed";
    ILLEGAL_OPERATION = 20, "IllegalOperation";
    INVALID_BSON = 22, "InvalidBSON";
    ALREADY_INITIALIZED = 23, "AlreadyInitialized";
    LOCK_TIMEOUT = 24, "LockTimeout";
    NAMESPACE_NOT_FOUND = 26, "NamespaceNotFound";
    INDEX_NOT_FOUND = 27, "IndexNotFound";
    PATH_NOT_VIABLE = 28, "PathNotViable";
    NON_EXISTENT_PATH = 29, "NonExistentPath";
    ROLE_NOT_FOUND = 31, "RoleNotFound";
    CONFLICTING_UPDATE_OPERATORS = 40, "ConflictingUpdateOperators";
    CURSOR_NOT_FOUND = 43, "CursorNotFound";
    USER_DATA_INCONSISTENT = 45, "UserDataInconsistent";
    NO_MATCHING_DOCUMENT = 47, "NoMatchingDocument";
    NAMESPACE_EXISTS = 48, "NamespaceExists";
    MAX_TIME_MS_EXPIRED = 50, "MaxTimeMSExpired";
    CANNOT_BACKFILL_ARRAY = 51, "CannotBackfillArray";
    DOLLAR_PREFIXED_FIELD_NAME = 52, "DollarPrefixedFieldName";
    INVALID_ID_FIELD = 53, "InvalidIdField";
    NOT_SINGLE_VALUE_FIELD = 54, "NotSingleValueField";
    INVALID_DB_REF = 55, "InvalidDBRef";
    EMPTY_FIELD_NAME = 56, "EmptyFieldName";
    DOTTED_FIELD_NAME = 57, "DottedFieldName";
    COMMAND_NOT_FOUND = 59, "CommandNotFound";
    NO_PROGRESS_MADE = 62, "NoProgressMade";
    WRITE_CONCERN_TIMEOUT = 64, "WriteConcernTimeout";
    IMMUTABLE_FIELD = 66, "ImmutableField";
    CANNOT_CREATE_INDEX = 67, "CannotCreateIndex";
    INDEX_ALREADY_EXISTS = 68, "IndexAlreadyExists";
    INVALID_OPTIONS = 72, "InvalidOptions";
    INVALID_NAMESPACE = 73, "InvalidNamespace";
    NODE_NOT_FOUND = 74, "NodeNotFound";
    NO_REPLICATION_ENABLED = 76, "NoReplicationEnabled";
    UNKNOWN_REPL_WRITE_CONCERN = 79, "UnknownReplWriteConcern";
    INDEX_OPTIONS_CONFLICT = 85, "IndexOptionsConflict";
    INDEX_KEY_SPECS_CONFLICT = 86, "IndexKeySpecsConflict";
    NETWORK_TIMEOUT = 89, "NetworkTimeout";
    SHUTDOWN_IN_PROGRESS = 91, "ShutdownInProgress";
    INVALID_REPLICA_SET_CONFIG = 93, "InvalidReplicaSetConfig";
    NOT_YET_INITIALIZED = 94, "NotYetInitialized";
    NOT_SECONDARY = 95, "NotSecondary";
    OPERATION_FAILED = 96, "OperationFailed";
    DB_PATH_IN_USE = 98, "DBPathInUse";
    UNSATISFIABLE_WRITE_CONCERN = 100, "UnsatisfiableWriteConcern";
    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE = 103, "NewReplicaSetConfigurationIncompatible";
    NODE_NOT_ELECTABLE = 104, "NodeNotElectable";
    CONFIGURATION_IN_PROGRESS = 109, "ConfigurationInProgress";
    LOG_WRITE_FAILED = 110, "LogWriteFailed";
    WRITE_CONFLICT = 112, "WriteConflict";
    COMMAND_NOT_SUPPORTED = 115, "CommandNotSupported";
    CONFLICTING_OPERATION_IN_PROGRESS = 117, "ConflictingOperationInProgress";
    DOCUMENT_VALIDATION_FAILURE = 121, "DocumentValidationFailure";
    NOT_A_REPLICA_SET = 123, "NotAReplicaSet";
    INVALID_ROLE_MODIFICATION = 128, "InvalidRoleModification";
    READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET = 134, "ReadConcernMajorityNotAvailableYet";
    CAPPED_POSITION_LOST = 136, "CappedPositionLost";
    INVALID_SSL_CONFIGURATION = 140, "InvalidSSLConfiguration";
    EXCEEDED_MEMORY_LIMIT = 146, "ExceededMemoryLimit";
    VIEW_DEPTH_LIMIT_EXCEEDED = 165, "ViewDepthLimitExceeded";
    COMMAND_NOT_SUPPORTED_ON_VIEW = 166, "CommandNotSupportedOnView";
    OPTION_NOT_SUPPORTED_ON_VIEW = 167, "OptionNotSupportedOnView";
    INVALID_PIPELINE_OPERATOR = 168, "InvalidPipelineOperator";
    TOO_MANY_MATCHING_DOCUMENTS = 170, "TooManyMatchingDocuments";
    CANNOT_INDEX_PARALLEL_ARRAYS = 171, "CannotIndexParallelArrays";
    QUERY_PLAN_KILLED = 175, "QueryPlanKilled";
    AMBIGUOUS_INDEX_KEY_PATTERN = 181, "AmbiguousIndexKeyPattern";
    PRIMARY_STEPPED_DOWN = 189, "PrimarySteppedDown";
    INVALID_INDEX_SPECIFICATION_OPTION = 197, "InvalidIndexSpecificationOption";
    NO_SUCH_SESSION = 206, "NoSuchSession";
    INVALID_UUID = 207, "InvalidUUID";
    UPDATE_OPERATION_FAILED = 218, "UpdateOperationFailed";
    ILLEGAL_OP_MSG_FLAG = 223, "IllegalOpMsgFlag";
    QUERY_FEATURE_NOT_ALLOWED = 224, "QueryFeatureNotAllowed";
    TRANSACTION_TOO_OLD = 225, "TransactionTooOld";
    CURSOR_KILLED = 237, "CursorKilled";
    SNAPSHOT_TOO_OLD = 239, "SnapshotTooOld";
    CONVERSION_FAILURE = 241, "ConversionFailure";
    BROKEN_PROMISE = 242, "BrokenPromise";
    SNAPSHOT_UNAVAILABLE = 246, "SnapshotUnavailable";
    NO_SUCH_TRANSACTION = 251, "NoSuchTransaction";
    TRANSACTION_COMMITTED = 256, "TransactionCommitted";
    TRANSACTION_TOO_LARGE = 257, "TransactionTooLarge";
    INVALID_RESUME_TOKEN = 260, "InvalidResumeToken";
    TOO_MANY_LOGICAL_SESSIONS = 261, "TooManyLogicalSessions";
    EXCEEDED_TIME_LIMIT = 262, "ExceededTimeLimit";
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION = 263, "OperationNotSupportedInTransaction";
    INDEX_BUILD_ABORTED = 276, "IndexBuildAborted";
    CHANGE_STREAM_FATAL_ERROR = 280, "ChangeStreamFatalError";
    CHANGE_STREAM_HISTORY_LOST = 286, "ChangeStreamHistoryLost";
    TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS = 290, "TransactionExceededLifetimeLimitSeconds";
    NO_QUERY_EXECUTION_PLANS = 291, "NoQueryExecutionPlans";
    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED = 292,
        "QueryExceededMemoryLimitNoDiskUseAllowed";
    OBJECT_IS_BUSY = 314, "ObjectIsBusy";
    API_VERSION_ERROR = 322, "APIVersionError";
    API_STRICT_ERROR = 323, "APIStrictError";
    API_DEPRECATION_ERROR = 324, "APIDeprecationError";
    UNSUPPORTED_OP_QUERY_COMMAND = 352, "UnsupportedOpQueryCommand";
    CANNOT_CONVERT_INDEX_TO_UNIQUE = 359, "CannotConvertIndexToUnique";
    COLLECTION_UUID_MISMATCH = 361, "CollectionUUIDMismatch";
    TEMPORARILY_UNAVAILABLE = 365, "TemporarilyUnavailable";
    REAUTHENTICATION_REQUIRED = 391, "ReauthenticationRequired";
    INGRESS_REQUEST_RATE_LIMIT_EXCEEDED = 462, "IngressRequestRateLimitExceeded";
    SOCKET_EXCEPTION = 9001, "SocketException";
    LEGACY_NOT_PRIMARY = 10058, "LegacyNotPrimary";
    NOT_WRITABLE_PRIMARY = 10107, "NotWritablePrimary";
    BSON_OBJECT_TOO_LARGE = 10334, "BSONObjectTooLarge";
    DUPLICATE_KEY = 11000, "DuplicateKey";
    INTERRUPTED_AT_SHUTDOWN = 11600, "InterruptedAtShutdown";
    INTERRUPTED = 11601, "Interrupted";
    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE = 11602, "InterruptedDueToReplStateChange";
    BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE = 12587,
        "BackgroundOperationInProgressForNamespace";
    MERGE_STAGE_NO_MATCHING_DOCUMENT = 13113, "MergeStageNoMatchingDocument";
    DATABASE_DIFFER_CASE = 13297, "DatabaseDifferCase";
    STALE_CONFIG = 13388, "StaleConfig";
    NOT_PRIMARY_NO_SECONDARY_OK = 13435, "NotPrimaryNoSecondaryOk";
    NOT_PRIMARY_OR_SECONDARY = 13436, "NotPrimaryOrSecondary";
    OUT_OF_DISK_SPACE = 14031, "OutOfDiskSpace";
    SEARCH_NOT_ENABLED = 31082, "SearchNotEnabled";
    IDL_FAILED_TO_PARSE = 40414, "IDLFailedToParse";
    IDL_UNKNOWN_FIELD = 40415, "IDLUnknownField";
}

impl Code {
    /// MongoDB's name of the code, such as `BadValue`, or `Location40324` for a code without a
    /// name.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self.known() {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("Location{}", self.0)),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}
