// What applications do with the Go driver; see `run`. Prints `ok NAME` or `FAIL NAME message`.
package main

import (
	"context"
	"fmt"
	"os"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

var ctx = context.Background()

func check(name string, act func() error) {
	if err := act(); err != nil {
		fmt.Println("FAIL", name, err)
		return
	}
	fmt.Println("ok", name)
}

func equal(found, wanted any) error {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		return fmt.Errorf("%v is not %v", found, wanted)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(os.Args[1]))
	if err != nil {
		fmt.Println("FAIL connect", err)
		os.Exit(1)
	}
	db := client.Database("smoke_go")
	_ = db.Drop(ctx)
	a := db.Collection("a")
	check("insert", func() error {
		var documents []any
		for i := 0; i < 500; i++ {
			documents = append(documents, bson.D{{"_id", i}, {"n", i}, {"g", i % 5}})
		}
		done, err := a.InsertMany(ctx, documents)
		if err != nil {
			return err
		}
		return equal(len(done.InsertedIDs), 500)
	})
	check("find", func() error {
		var found []bson.M
		cursor, err := a.Find(ctx, bson.D{}, options.Find().SetBatchSize(7))
		if err != nil {
			return err
		}
		return first(cursor.All(ctx, &found), equal(len(found), 500))
	})
	check("update", func() error {
		done, err := a.UpdateMany(ctx, bson.D{{"g", 1}}, bson.D{{"$inc", bson.D{{"n", 1000}}}})
		if err != nil {
			return err
		}
		return equal(done.ModifiedCount, 100)
	})
	check("bulk_write", func() error {
		done, err := a.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", "q"}}),
			mongo.NewDeleteOneModel().SetFilter(bson.D{{"_id", 2}}),
			mongo.NewDeleteManyModel().SetFilter(bson.D{{"g", 4}}),
		})
		if err != nil {
			return err
		}
		return first(equal(done.InsertedCount, 1), equal(done.DeletedCount, 101))
	})
	check("aggregate", func() error {
		var found []bson.D
		cursor, err := a.Aggregate(ctx, bson.A{bson.D{{"$count", "c"}}})
		if err != nil {
			return err
		}
		return first(cursor.All(ctx, &found), equal(found, []bson.D{{{"c", 400}}}))
	})
	check("index", func() error {
		name, err := a.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{"n", 1}}})
		_, refused := a.InsertOne(ctx, bson.D{{"_id", 1}})
		return first(err, equal(name, "n_1"), equal(mongo.IsDuplicateKeyError(refused), true))
	})
	check("transaction", func() error {
		return client.UseSession(ctx, func(session mongo.SessionContext) error {
			act := func(session mongo.SessionContext) (any, error) {
				_, one := a.InsertOne(session, bson.D{{"_id", "t"}})
				_, two := db.Collection("new").InsertOne(session, bson.D{{"_id", "t"}})
				return nil, first(one, two)
			}
			_, err := session.WithTransaction(session, act)
			n, counted := db.Collection("new").CountDocuments(ctx, bson.D{})
			return first(err, counted, equal(n, 1))
		})
	})
	check("drop", func() error { return db.Drop(ctx) })
	_ = client.Disconnect(ctx)
}
