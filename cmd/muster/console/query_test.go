// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
	"muster.dev/muster/internal/platform/statedir"
)

// A query of the console is answered by the log store of the installation, and an error says which command mends it.
func TestQuery(t *testing.T) {
	b := world(t)
	dir := statedir.Dir(b.O.StateDir)
	record := "apiVersion: muster.dev/v1alpha1\nkind: Cluster\nmetadata: {namespace: home}\nspec: {name: home, eks: {loggingTypes: [audit]}}\n"
	if err := os.WriteFile(dir.Cluster("home").Record(), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &source{Options: b.O, dir: dir, now: noon}
	query, err := logsinsights.Parse("display verb")
	if err != nil {
		t.Fatal(err)
	}
	question := logquery.Question{Query: query, Start: noon().Add(-time.Hour), End: noon(), Now: noon(), Limit: 2}
	ask := func(cluster string) (pageserver.LogAnswer, error) { return s.Query(t.Context(), cluster, question) }
	if _, err := ask("blue"); !errors.Is(err, pageserver.ErrNotFound) {
		t.Errorf("another cluster: %v", err)
	}
	none := func(kept bool) {
		t.Helper()
		_, err := ask("home")
		if got, ok := errors.AsType[*logquery.NoStoreError](err); !ok || *got != (logquery.NoStoreError{Cluster: "home", Kept: kept}) {
			t.Errorf("without a log store: %v", err)
		}
	}
	none(false)
	store := statedir.LogStore(dir)
	for _, path := range []string{store.Data(), filepath.Dir(store.Socket())} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	none(true)
	logstoretest.Start(t, store.Socket())
	session, err := (&logstore.Store{Socket: store.Socket()}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var rows []byte
	for _, cluster := range []string{"home", "blue"} {
		rows = logevent.Event{Log: "000000000000:/aws/eks/" + cluster + "/cluster", Stream: "s", File: "f", Time: clitest.Noon.Add(-time.Minute), Text: []byte(`{"verb":"get"}`)}.Append(rows)
	}
	if err := session.Insert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"home", ""} {
		answer, err := ask(cluster)
		if err != nil || answer.Cluster != "home" || len(answer.Types) != 1 || len(answer.Result.Rows) != 1 || answer.Result.Rows[0][0].Value != "get" {
			t.Errorf("cluster %q: %+v %v", cluster, answer, err)
		}
	}
}
