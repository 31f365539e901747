package interop

import (
	"reflect"
	"testing"

	"github.com/couchbase/gocb/v2"
)

func TestPathsAreLookedUpAndChanged(t *testing.T) {
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, object{"a": object{"b": []int{1, 2}}, "n": 1}, nil)
	must(t, err)
	found, err := collection.LookupIn(key, []gocb.LookupInSpec{
		gocb.GetSpec("a.b[1]", nil), gocb.CountSpec("a.b", nil), gocb.ExistsSpec("none", nil),
		gocb.GetSpec("none", nil),
	}, nil)
	must(t, err)
	var second, count int
	must(t, found.ContentAt(0, &second))
	must(t, found.ContentAt(1, &count))
	if second != 2 || count != 2 || found.Exists(2) {
		t.Errorf("found %d of %d, and %v", second, count, found.Exists(2))
	}
	expect(t, found.ContentAt(3, &second), gocb.ErrPathNotFound)

	_, err = collection.MutateIn(key, []gocb.MutateInSpec{
		gocb.UpsertSpec("c", true, nil), gocb.ArrayAppendSpec("a.b", 3, nil),
		gocb.IncrementSpec("n", 4, nil), gocb.RemoveSpec("a.b[0]", nil),
	}, nil)
	must(t, err)
	var document map[string]any
	read(t, collection, key, &document)
	expected := map[string]any{
		"a": map[string]any{"b": []any{2.0, 3.0}}, "c": true, "n": 5.0,
	}
	if !reflect.DeepEqual(document, expected) {
		t.Errorf("read %v", document)
	}
}

func TestAMutationThatFailsChangesNothing(t *testing.T) {
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, object{"a": 1}, nil)
	must(t, err)
	for _, refused := range []struct {
		spec     gocb.MutateInSpec
		expected error
	}{
		{gocb.ReplaceSpec("none", 1, nil), gocb.ErrPathNotFound},
		{gocb.InsertSpec("a", 1, nil), gocb.ErrPathExists},
		{gocb.ArrayAppendSpec("a", 1, nil), gocb.ErrPathMismatch},
		{gocb.UpsertSpec("a..b", 1, nil), gocb.ErrPathInvalid},
	} {
		_, err := collection.MutateIn(key, []gocb.MutateInSpec{gocb.UpsertSpec("b", 2, nil), refused.spec}, nil)
		expect(t, err, refused.expected)
	}
	if applied := shared.applied(t, key); applied != 1 {
		t.Errorf("%d writes were applied, not 1", applied)
	}
}

func TestExtendedAttributesAndMacros(t *testing.T) {
	collection, key := shared.open(t)
	attribute := &gocb.UpsertSpecOptions{IsXattr: true, CreatePath: true}
	written, err := collection.MutateIn(key, []gocb.MutateInSpec{
		gocb.UpsertSpec("note.by", "ada", attribute),
		gocb.UpsertSpec("note.cas", gocb.MutationMacroCAS, attribute),
		gocb.UpsertSpec("n", 1, nil),
	}, &gocb.MutateInOptions{StoreSemantic: gocb.StoreSemanticsUpsert})
	must(t, err)
	found, err := collection.LookupIn(key, []gocb.LookupInSpec{
		gocb.GetSpec("note.by", &gocb.GetSpecOptions{IsXattr: true}),
		gocb.GetSpec("note.cas", &gocb.GetSpecOptions{IsXattr: true}),
	}, nil)
	must(t, err)
	var by, cas string
	must(t, found.ContentAt(0, &by))
	must(t, found.ContentAt(1, &cas))
	if by != "ada" || len(cas) != len("0x0000000000000000") || written.Cas() == 0 {
		t.Errorf("read %q and %q", by, cas)
	}
	var document map[string]any
	read(t, collection, key, &document)
	if len(document) != 1 {
		t.Errorf("attributes are in the document: %v", document)
	}
}
