//! Settings and parameters of MongoDB 8 and Percona Server that have no meaning here, or that ask
//! for what this server does not have.
//!
//! Files that work with MongoDB should work. So what tunes a part that this server lacks is
//! accepted, and the log names it. What promises security (key servers, auditing, LDAP,
//! Kerberos, redaction) is refused: a server that ignored it would be less safe than its file says.

use super::setting::Form::{Number, On, Switch, Text};
use super::setting::{Flag, Setting};

const CHECKED: &str = "every message is checked";
const CLOUD: &str = "no data are sent to MongoDB";
const COLLECTOR: &str = "there is no diagnostic data collector; see getDiagnosticData";
const CONNECTIONS: &str = "connections need no threads of their own";
const ENGINE: &str = "engines have options of their own";
const CLUSTER_X509: &str = "certificates of members have the O, OU and DC of this server's";
const MEMBERS: &str = "there are no other members to connect to";
const MEMORY: &str = "queries have a budget of memory; see queryMemoryLimitMegabytes";
const PLANNER: &str = "the planner has no such option";
const SHARDS: &str = "there is no sharding";
const SYSLOG: &str = "the log is not sent to syslog";
const TRACES: &str = "errors are logged where they are handled";
const WINDOWS: &str = "it is for Windows";
const ALLOCATOR: &str = "the allocator is the system's";
const SESSIONS: &str = "sessions are kept in memory";

const AUDIT: &str = "auditing is not supported; remove the setting to start without it";
const KEY_SERVERS: &str = "key servers are not supported; use security.encryptionKeyFile and \
     remove the setting";
const LDAP: &str = "LDAP is not supported; use users of this server or certificates";
const SASL: &str = "Kerberos and saslauthd are not supported; use SCRAM or certificates";
const REDACTION: &str = "the log is not redacted; keep it readable by its owner only, and remove \
     the setting";
const NO_MEMBERS: &str = "there are no other members, so it cannot be kept; remove the setting";
const CIPHERS: &str = "ciphers cannot be chosen: rustls has no weak ones; remove the setting";

/// Settings.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::idle("systemLog.traceAllExceptions", Switch, TRACES)
        .flags(&[Flag::switch("traceExceptions", "true")]),
    Setting::idle("systemLog.syslogFacility", Text, SYSLOG),
    Setting::idle(
        "processManagement.windowsService.serviceName",
        Text,
        WINDOWS,
    ),
    Setting::idle(
        "processManagement.windowsService.displayName",
        Text,
        WINDOWS,
    ),
    Setting::idle(
        "processManagement.windowsService.description",
        Text,
        WINDOWS,
    ),
    Setting::idle(
        "processManagement.windowsService.serviceUser",
        Text,
        WINDOWS,
    ),
    Setting::idle("cloud.monitoring.free.state", Text, CLOUD),
    Setting::idle("cloud.monitoring.free.tags", Text, CLOUD),
    Setting::idle("net.wireObjectCheck", On, CHECKED),
    Setting::idle("net.serviceExecutor", Text, CONNECTIONS),
    Setting::idle("net.transportLayer", Text, CONNECTIONS),
    Setting::idle("net.maxIncomingConnectionsOverride", Text, CONNECTIONS),
    Setting::refused(
        "net.http.enabled",
        Switch,
        "there is no HTTP interface; Prometheus reads net.prometheus.port",
    ),
    Setting::refused("net.tls.FIPSMode", Switch, "FIPS mode is not supported"),
    Setting::refused(
        "net.tls.clusterCAFile",
        Text,
        "certificates of clients are checked by one file; name it in net.tls.CAFile",
    ),
    Setting::refused("net.tls.clusterAuthX509.attributes", Text, CLUSTER_X509),
    Setting::refused("net.tls.clusterAuthX509.extensionValue", Text, CLUSTER_X509),
    Setting::idle(
        "net.tls.logVersions",
        Text,
        "versions of TLS are counted, not logged",
    ),
    Setting::refused(
        "net.tls.certificateSelector",
        Text,
        "the certificate comes from a file; name it in net.tls.certificateKeyFile",
    ),
    Setting::idle("net.tls.clusterCertificateSelector", Text, MEMBERS),
    Setting::refused(
        "security.transitionToAuth",
        Switch,
        "clients must all authenticate, or none; remove the setting",
    ),
    Setting::refused("security.redactClientLogData", Switch, REDACTION),
    Setting::refused("security.clusterIpSourceAllowlist", Text, NO_MEMBERS),
    Setting::refused("security.clusterIpSourceWhitelist", Text, NO_MEMBERS),
    Setting::idle("security.sasl.hostName", Text, SASL),
    Setting::idle("security.sasl.serviceName", Text, SASL),
    Setting::refused("security.sasl.saslauthdSocketPath", Text, SASL),
    Setting::refused("security.kmip", Text, KEY_SERVERS),
    Setting::refused("security.vault", Text, KEY_SERVERS),
    Setting::refused("security.ldap", Text, LDAP),
    Setting::refused("auditLog", Text, AUDIT),
    Setting::idle(
        "storage.indexBuildRetry",
        Switch,
        "interrupted index builds are always restarted",
    ),
    Setting::idle("storage.repairPath", Text, "engines repair in place"),
    Setting::idle("storage.mmapv1", Text, "there is no such engine"),
    Setting::refused(
        "operationProfiling.filter",
        Text,
        "the filter is set at run time; use db.setProfilingLevel",
    ),
    Setting::idle(
        "operationProfiling.rateLimit",
        Number,
        "use operationProfiling.slowOpSampleRate",
    ),
    Setting::idle("replication.secondaryIndexPrefetch", Text, MEMBERS),
    Setting::refused(
        "sharding.clusterRole",
        Text,
        "sharding is not supported; remove the setting to run one server",
    ),
    Setting::idle("sharding.archiveMovedChunks", Switch, SHARDS),
    Setting::refused(
        "sharding.configDB",
        Text,
        "this server is no sharding router; remove the setting",
    ),
    Setting::refused(
        "snmp",
        Text,
        "SNMP is not supported; Prometheus reads net.prometheus.port",
    ),
];

/// Parameters of `setParameter`.
pub(super) const PARAMETERS: &[Setting] = &[
    Setting::idle("allowDiskUseByDefault", On, MEMORY),
    Setting::refused("auditAuthorizationSuccess", Switch, AUDIT),
    Setting::idle(
        "authFailedDelayMs",
        Number,
        "failed logins are always delayed",
    ),
    Setting::idle("connPoolMaxConnsPerHost", Number, MEMBERS),
    Setting::idle("connPoolMaxInUseConnsPerHost", Number, MEMBERS),
    Setting::idle("diagnosticDataCollectionDirectorySizeMB", Number, COLLECTOR),
    Setting::idle("diagnosticDataCollectionEnabled", Switch, COLLECTOR),
    Setting::idle("diagnosticDataCollectionFileSizeMB", Number, COLLECTOR),
    Setting::idle("diagnosticDataCollectionPeriodMillis", Number, COLLECTOR),
    Setting::idle("disableSplitHorizonIPCheck", Switch, MEMBERS),
    Setting::idle(
        "enableDetailedConnectionHealthMetricLogLines",
        Switch,
        "connections are logged in full",
    ),
    Setting::idle(
        "failIndexKeyTooLong",
        Switch,
        "index keys may have any length",
    ),
    Setting::idle("globalConnPoolIdleTimeoutMinutes", Number, MEMBERS),
    Setting::idle("heapProfilingEnabled", Switch, ALLOCATOR),
    Setting::idle("honorSystemUmask", Switch, "files are their owner's alone"),
    Setting::idle("indexBuildMinAvailableDiskSpaceMB", Number, ENGINE),
    Setting::idle(
        "initialSyncMethod",
        Text,
        "an initial sync is always logical, between any two engines",
    ),
    Setting::idle(
        "initialSyncSourceReadPreference",
        Text,
        "the source of an initial sync is a secondary if there is one",
    ),
    Setting::idle("internalQueryExecMaxBlockingSortBytes", Number, MEMORY),
    Setting::idle("internalQueryForceClassicEngine", Switch, PLANNER),
    Setting::idle("internalQueryFrameworkControl", Text, PLANNER),
    Setting::idle(
        "internalQueryMaxBlockingSortMemoryUsageBytes",
        Number,
        MEMORY,
    ),
    Setting::idle("internalQueryPlanEvaluationWorks", Number, PLANNER),
    Setting::idle("logicalSessionRefreshMillis", Number, SESSIONS),
    Setting::idle("maxAcceptableLogicalClockDriftSecs", Number, MEMBERS),
    Setting::idle(
        "maxLogSizeKB",
        Number,
        "a line of the log has at most 40 KB",
    ),
    Setting::idle(
        "maxNumActiveUserIndexBuilds",
        Number,
        "index builds share one budget of memory",
    ),
    Setting::idle("maxSessions", Number, SESSIONS),
    Setting::idle(
        "maxTransactionLockRequestTimeoutMillis",
        Number,
        "transactions do not lock",
    ),
    Setting::idle("minSnapshotHistoryWindowInSeconds", Number, ENGINE),
    Setting::refused("opensslCipherConfig", Text, CIPHERS),
    Setting::refused("opensslCipherSuiteConfig", Text, CIPHERS),
    Setting::idle("oplogBatchDelayMillis", Number, MEMBERS),
    Setting::idle("planCacheSize", Text, PLANNER),
    Setting::idle("processUmask", Text, "files are their owner's alone"),
    Setting::idle("replBatchLimitOperations", Number, MEMBERS),
    Setting::idle("replWriterThreadCount", Number, MEMBERS),
    Setting::idle("rollbackTimeLimitSecs", Number, MEMBERS),
    Setting::refused("saslauthdPath", Text, SASL),
    Setting::idle("saslHostName", Text, SASL),
    Setting::idle("saslServiceName", Text, SASL),
    Setting::idle("skipShardingConfigurationChecks", Switch, SHARDS),
    Setting::idle("storageEngineConcurrencyAdjustmentAlgorithm", Text, ENGINE),
    Setting::idle("storageEngineConcurrentReadTransactions", Number, ENGINE),
    Setting::idle("storageEngineConcurrentWriteTransactions", Number, ENGINE),
    Setting::idle(
        "suppressNoTLSPeerCertificateWarning",
        Switch,
        "the log warns once",
    ),
    Setting::idle("syncdelay", Number, "use storage.syncPeriodSecs"),
    Setting::idle("taskExecutorPoolSize", Number, SHARDS),
    Setting::idle("tcmallocAggressiveMemoryDecommit", Text, ALLOCATOR),
    Setting::idle("tcmallocEnableBackgroundThread", Switch, ALLOCATOR),
    Setting::idle("tcmallocMaxTotalThreadCacheBytes", Number, ALLOCATOR),
    Setting::idle("tcmallocReleaseRate", Number, ALLOCATOR),
    Setting::idle(
        "tcpFastOpenClient",
        Switch,
        "connections are ordinary ones of TCP",
    ),
    Setting::idle(
        "tcpFastOpenQueueSize",
        Number,
        "connections are ordinary ones of TCP",
    ),
    Setting::idle(
        "tcpFastOpenServer",
        Switch,
        "connections are ordinary ones of TCP",
    ),
    Setting::idle("tlsWithholdClientCertificate", Switch, MEMBERS),
    Setting::idle("traceExceptions", Switch, TRACES),
    Setting::refused("auditConfigPollingFrequencySecs", Text, AUDIT),
    Setting::idle(
        "watchdogPeriodSeconds",
        Number,
        "betree closes a store whose disk fails",
    ),
    Setting::idle("wiredTigerConcurrentReadTransactions", Number, ENGINE),
    Setting::idle("wiredTigerConcurrentWriteTransactions", Number, ENGINE),
    Setting::idle("wiredTigerEngineRuntimeConfig", Text, ENGINE),
];

/// The row of a name: its own, or that of a section it is in (`auditLog` for `auditLog.path`).
pub(super) fn find(rows: &'static [Setting], name: &str) -> Option<&'static Setting> {
    rows.iter().find(|row| {
        let rest = name.strip_prefix(row.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}
