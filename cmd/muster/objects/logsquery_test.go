// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
	"muster.dev/muster/internal/platform/statedir"
)

func TestLogsQuery(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	clitest.WantErr(t, runLogs(t.Context(), b, "query", "limit 1"), "muster up", false)
	dir := stateful(t, b)
	record := "apiVersion: muster.dev/v1alpha1\nkind: Cluster\nmetadata: {namespace: muster}\nspec: {name: muster, eks: {loggingTypes: [audit]}}\n"
	if err := os.WriteFile(dir.Cluster("muster").Record(), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"fields @timestamp\n\t| filtre x"}, "unexpected symbol found filtre at line 2 and position 4\n  \\t| filtre x\n      ^"},
		{[]string{"limit 1", "--end", "2026-11-20T12:00:00Z"}, "--end goes with --start"},
		{[]string{"limit 1", "--start", "yesterday"}, `invalid --start "yesterday": must be of the form`},
		{[]string{"limit 1", "--start", "2026-11-20T12:00:01Z", "--end", "2026-11-20T12:00:00Z"}, "ends at 2026-11-20T12:00:00Z, before it begins"},
		{[]string{"limit 1", "--since", "-1m"}, "invalid --since -1m0s"},
		{[]string{"limit 1", "--limit", "0"}, "invalid --limit 0: must be from 1 to 10000"},
	} {
		clitest.WantErr(t, runLogs(t.Context(), b, append([]string{"query"}, test.args...)...), test.want, true)
	}
	clitest.WantErr(t, runLogs(t.Context(), b, "query", "limit 1"), "build it by `make logs`, and switch log types on by aws eks update-cluster-config --name muster", false)
	store := statedir.LogStore(dir)
	for _, path := range []string{store.Data(), filepath.Dir(store.Socket())} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	clitest.WantErr(t, runLogs(t.Context(), b, "query", "limit 1"), "the log store does not run", false)
	logstoretest.Start(t, store.Socket())
	session, err := (&logstore.Store{Socket: store.Socket()}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var rows []byte
	for i, text := range []string{"FLAG: --a", "FLAG: --b=\"\x1b[0m\"", `{"verb":"get"}`} {
		rows = logevent.Event{Log: "000000000000:/aws/eks/muster/cluster", Stream: "s", File: "f", Offset: int64(i), Time: clitest.Noon.Add(time.Duration(i-3) * 20 * time.Minute), Text: []byte(text)}.Append(rows)
	}
	if err := session.Insert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, out, talk string }{
		{"filter @message like 'FLAG' | sort @timestamp asc", "@timestamp                @message\n2026-11-20 11:00:00.000   FLAG: --a\n2026-11-20 11:20:00.000   FLAG: --b=\"\\x1b[0m\"\n", ""},
		{"display @message, verb | limit 1", "@message         verb\n{\"verb\":\"get\"}   get\n", ""},
		{"filter verb = 'list'", "", "No rows. Of cluster muster these log types are on: audit.\n"},
	} {
		if err := runLogs(t.Context(), b, "query", test.args); err != nil || b.Out.String() != test.out || b.Err.String() != test.talk {
			t.Errorf("%s: %v, printed\n%s%s", test.args, err, &b.Out, &b.Err)
		}
	}
	for format, want := range map[string]string{
		"json": "[\n  {\n    \"@ptr\": \"f-00000000000000000002\",\n    \"verb\": \"get\"\n  }\n]\n",
		"yaml": "- '@ptr': f-00000000000000000002\n  verb: get\n",
	} {
		if err := runLogs(t.Context(), b, "query", "display verb", "--start", "2026-11-20T11:30:00Z", "--end", "2026-11-20T12:00:00Z", "--limit", "1", "-o", format); err != nil || b.Out.String() != want {
			t.Errorf("%v\n%s", err, &b.Out)
		}
	}
}
