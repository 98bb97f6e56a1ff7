// What applications do with the Java driver; see `run`. Prints `ok NAME` or `FAIL NAME message`.

import com.mongodb.ErrorCategory;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.DeleteManyModel;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Updates;
import java.util.ArrayList;
import java.util.List;
import org.bson.Document;

public class Smoke {
    interface Act {
        void run() throws Exception;
    }

    static void check(String name, Act act) {
        try {
            act.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            System.out.println("FAIL " + name + " " + error);
        }
    }

    static void equal(Object found, Object wanted) {
        if (!String.valueOf(found).equals(String.valueOf(wanted))) {
            throw new AssertionError(found + " is not " + wanted);
        }
    }

    public static void main(String[] arguments) {
        try (MongoClient client = MongoClients.create(arguments[0])) {
            MongoDatabase db = client.getDatabase("smoke_java");
            db.drop();
            MongoCollection<Document> a = db.getCollection("a");
            check("insert", () -> {
                List<Document> documents = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    documents.add(new Document("_id", i).append("n", i).append("g", i % 5));
                }
                equal(a.insertMany(documents).getInsertedIds().size(), 500);
            });
            check("find", () -> {
                equal(a.find().batchSize(7).into(new ArrayList<>()).size(), 500);
            });
            check("update", () -> {
                var done = a.updateMany(Filters.eq("g", 1), Updates.inc("n", 9));
                equal(done.getModifiedCount(), 100);
            });
            check("bulk_write", () -> {
                var done = a.bulkWrite(List.of(
                        new InsertOneModel<>(new Document("_id", "q")),
                        new DeleteOneModel<>(Filters.eq("_id", 2)),
                        new DeleteManyModel<>(Filters.eq("g", 4))));
                equal(done.getInsertedCount(), 1);
                equal(done.getDeletedCount(), 101);
            });
            check("aggregate", () -> {
                equal(a.aggregate(List.of(Aggregates.count("c"))).first().get("c"), 400);
            });
            check("index", () -> {
                equal(a.createIndex(Indexes.ascending("n")), "n_1");
                try {
                    a.insertOne(new Document("_id", 1));
                    throw new AssertionError("a duplicate was inserted");
                } catch (MongoWriteException refused) {
                    equal(refused.getError().getCategory(), ErrorCategory.DUPLICATE_KEY);
                }
            });
            check("transaction", () -> {
                try (ClientSession session = client.startSession()) {
                    session.withTransaction(() -> {
                        a.insertOne(session, new Document("_id", "t"));
                        return db.getCollection("new").insertOne(session, new Document());
                    });
                }
                equal(db.getCollection("new").countDocuments(), 1);
            });
            check("drop", db::drop);
        }
    }
}
