// The few calls of RocksDB's C++ interface that its C interface (rocksdb/c.h) lacks:
// write options of an open transaction, untracked writes, a look into a transaction's own writes,
// and a range compaction that can be cancelled and says how it went.
//
// The C interface wraps each C++ object in a struct whose first member points to it (db/c.cc of
// the same release). The structs are repeated here; the integration tests would notice a change.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>

#include "rocksdb/c.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/version.h"

using ROCKSDB_NAMESPACE::BottommostLevelCompaction;
using ROCKSDB_NAMESPACE::ColumnFamilyHandle;
using ROCKSDB_NAMESPACE::CompactRangeOptions;
using ROCKSDB_NAMESPACE::DB;
using ROCKSDB_NAMESPACE::Slice;
using ROCKSDB_NAMESPACE::Status;
using ROCKSDB_NAMESPACE::Transaction;
using ROCKSDB_NAMESPACE::WBWIIterator;
using ROCKSDB_NAMESPACE::WriteOptions;

extern "C" {

struct rocksdb_t {
  DB* rep;
};
struct rocksdb_column_family_handle_t {
  ColumnFamilyHandle* rep;
};
struct rocksdb_transaction_t {
  Transaction* rep;
};
struct rocksdb_writeoptions_t {
  WriteOptions rep;
};

static void save_error(const Status& s, char** error) {
  if (!s.ok()) {
    *error = strdup(s.ToString().c_str());
  }
}

#define ROMANESCO_TEXT(x) #x
#define ROMANESCO_VERSION(a, b, c) ROMANESCO_TEXT(a) "." ROMANESCO_TEXT(b) "." ROMANESCO_TEXT(c)

// The version of the headers this was compiled against, which are those of the library.
const char* romanesco_version() {
  return ROMANESCO_VERSION(ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH);
}

// Replace the options the commit will write with.
void romanesco_txn_set_write_options(rocksdb_transaction_t* txn,
                                     const rocksdb_writeoptions_t* options) {
  txn->rep->SetWriteOptions(options->rep);
}

void romanesco_txn_put_untracked(rocksdb_transaction_t* txn, rocksdb_column_family_handle_t* cf,
                                 const char* key, size_t key_len, const char* value,
                                 size_t value_len, char** error) {
  save_error(txn->rep->PutUntracked(cf->rep, Slice(key, key_len), Slice(value, value_len)), error);
}

void romanesco_txn_delete_untracked(rocksdb_transaction_t* txn, rocksdb_column_family_handle_t* cf,
                                    const char* key, size_t key_len, char** error) {
  save_error(txn->rep->DeleteUntracked(cf->rep, Slice(key, key_len)), error);
}

// 1 when the transaction has written a key in [from, to).
unsigned char romanesco_txn_wrote_within(rocksdb_transaction_t* txn,
                                         rocksdb_column_family_handle_t* cf, const char* from,
                                         size_t from_len, const char* to, size_t to_len) {
  std::unique_ptr<WBWIIterator> it(txn->rep->GetWriteBatch()->NewIterator(cf->rep));
  it->Seek(Slice(from, from_len));
  return it->Valid() && it->Entry().key.compare(Slice(to, to_len)) < 0;
}

// Compact [from, to] (null: open). `cancelled` is read as a std::atomic<bool>, as long as the call
// lasts.
void romanesco_compact(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* from,
                       size_t from_len, const char* to, size_t to_len, void* cancelled,
                       char** error) {
  static_assert(sizeof(std::atomic<bool>) == 1, "an atomic bool is a byte");
  CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = BottommostLevelCompaction::kForceOptimized;
  options.canceled = static_cast<std::atomic<bool>*>(cancelled);
  Slice begin(from, from == nullptr ? 0 : from_len);
  Slice end(to, to == nullptr ? 0 : to_len);
  save_error(db->rep->CompactRange(options, cf->rep, from == nullptr ? nullptr : &begin,
                                   to == nullptr ? nullptr : &end),
             error);
}

}  // extern "C"
