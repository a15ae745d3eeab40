// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// TestLogsAreKept switches log types of a cluster on and off by EKS's API while requests are made and the log store and the
// service are killed: each line of the audit log is in the log store, once, with a field for each of its values. No
// process of the control plane is started again for it, no other user of the host reaches the log store, and before
// anybody asks for logs there is none. Lines of a type that is off are not kept, and the steps of joins are read as before.
// Queries of CloudWatch Logs Insights about how nodes join have their answers. The AWS CLI queries, reads, writes and deletes logs.
//
//story:about plane/logshipper plane/logstore plane/logquery plane/logevent plane/component cluster/serve cloud/cloudwatchlogs
//story:needs logs
func TestLogsAreKept(t *testing.T) {
	i := newInstallation(t)
	if _, err := os.Stat(filepath.Join(i.bin, component.LogStoreProgram)); err != nil {
		t.Fatalf("run `make logs` first, which builds VictoriaLogs: %v", err)
	}
	i.muster("up", "--provider", "simulated", "--nodes", "1")
	i.ready()
	if _, runs := i.processes()[component.LogStore]; runs {
		t.Error("there is a log store, and nobody has asked for logs")
	}
	l := newLogStore(t, i)
	before := i.processes()

	l.switches(`{"types":["api","audit","authenticator","controllerManager","scheduler"],"enabled":true}`)
	l.allKept()
	l.fieldsOfACSR()
	l.streamsOfAll()
	l.queries()
	l.cloudWatch()
	l.isPrivate()
	l.killed()
	l.allKept()

	l.switches(`{"types":["audit"],"enabled":false}`)
	// Once a line of another log is kept that was written later, the round that noticed the switch is over.
	seen := l.count(`"@logStream":~"^kube-apiserver-audit"`)
	for n := range 20 {
		i.mustKubectl("create", "configmap", fmt.Sprintf("off-%d", n))
	}
	<-time.After(5 * time.Second)
	if off := l.count(`"objectRef.name":~"^off-"`); off > 0 {
		t.Errorf("%d lines of a log are kept that is off", off)
	}
	if now := l.count(`"@logStream":~"^kube-apiserver-audit"`); now < seen {
		t.Errorf("%d lines of the log were kept, and are %d", seen, now)
	}
	i.ready()
	for name, p := range before {
		if now := i.processes()[name]; strings.HasPrefix(name, "cluster/") && now.PID != p.PID {
			t.Errorf("%s was started again", name)
		}
	}
}

// logStore is an account whose log store is asked.
type logStore struct {
	*iam
	client *http.Client
}

func newLogStore(t *testing.T, i *installation) *logStore {
	t.Helper()
	l := &logStore{iam: newIAM(t, i), client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", statedir.LogStore(i.dir).Socket())
		},
	}}}
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

// switches changes the log types of the cluster.
func (l *logStore) switches(types string) {
	l.t.Helper()
	l.updated(l.update("update-cluster-config", "--name", "muster", "--logging", `{"clusterLogging":[`+types+`]}`), "muster")
}

// rows asks the log store.
func (l *logStore) rows(query string) ([]map[string]string, error) {
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, "http://log-store/select/logsql/query", strings.NewReader(url.Values{"query": {query}}.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", query, response.Status)
	}
	var rows []map[string]string
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 4<<20)
	for scanner.Scan() {
		var row map[string]string
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, scanner.Err()
}

// count is how many rows a filter selects.
func (l *logStore) count(filter string) int {
	l.t.Helper()
	rows, err := l.rows(filter + " | stats count() n")
	if err != nil || len(rows) != 1 {
		l.t.Fatalf("%s: %v %v", filter, rows, err)
	}
	var n int
	if _, err := fmt.Sscan(rows[0]["n"], &n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// allKept waits until the log store has each line of the audit logs, and no line twice.
func (l *logStore) allKept() {
	l.t.Helper()
	l.eventually("all lines of the audit log are kept", func() error {
		lines := l.auditLines() // before the rows: what is written meanwhile is not missing
		rows, err := l.rows(`"@logStream":~"^kube-apiserver-audit" | fields _msg`)
		if err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, row := range rows {
			kept[row["_msg"]] = true
		}
		missing := slices.DeleteFunc(lines, func(line string) bool { return kept[line] })
		if len(missing) > 0 {
			return fmt.Errorf("%d lines are missing beside %d that are there: %.300s", len(missing), len(kept), missing[0])
		}
		return nil
	})
	twice, err := l.rows(`* | stats by ("@file", "@offset") count() n | filter n:>1`)
	if err != nil || len(twice) > 0 {
		l.t.Errorf("lines are there twice: %v %v", twice, err)
	}
	lines, err := l.rows(`"@logStream":~"^kube-apiserver-audit" | stats by (_msg) count() n | filter n:>1`)
	if err != nil || len(lines) > 0 {
		l.t.Errorf("%d lines of the audit log are there twice: %v", len(lines), err)
	}
}

// auditLines are the lines of the audit logs that are whole.
func (l *logStore) auditLines() (all []string) {
	l.t.Helper()
	paths, err := filepath.Glob(filepath.Join(string(l.cluster()), "audit", "*", "audit*.log"))
	if err != nil || len(paths) == 0 {
		l.t.Fatal(paths, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was renamed
			l.t.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			if text, whole := bytes.CutSuffix(line, []byte("\n")); whole {
				all = append(all, string(text))
			}
		}
	}
	return all
}

// fieldsOfACSR looks for the line that says that a node's certificate was approved, by fields in an array.
func (l *logStore) fieldsOfACSR() {
	l.t.Helper()
	l.eventually("the approval of a CSR is found by its fields", func() error {
		rows, err := l.rows(`{"@log"="` + iamAccount + `:/aws/eks/muster/cluster"} "objectRef.resource":=certificatesigningrequests "objectRef.subresource":=approval verb:=update "responseObject.status.conditions.0.type":=Approved`)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errors.New("it is not there")
		}
		if row := rows[0]; row["responseObject.status.conditions.0.message"] == "" || row["user.username"] == "" || !strings.HasPrefix(row["@logStream"], "kube-apiserver-audit-") || row["_time"] == "" {
			l.t.Errorf("%v", row)
		}
		return nil
	})
}

// queries asks what an article about joins asks of CloudWatch. Its query about the controllers excludes its own answer; it is asked
// with like.
func (l *logStore) queries() {
	l.t.Helper()
	requests := strings.Fields(l.mustKubectl("get", "csr", "-o", "name"))
	if len(requests) == 0 {
		l.t.Fatal("there is no certificate signing request")
	}
	_, request, _ := strings.Cut(requests[0], "/")
	const sorted = ` | fields @timestamp, @message | sort @timestamp asc | filter @message like `
	for query, want := range map[string]string{
		`filter @logStream not like /^kube-apiserver-audit/ | filter @logStream like /^kube-apiserver-/` + sorted + `"--authorization-mode" | limit 10000`: "FLAG: --authorization-mode=",
		`filter @logStream like /^kube-controller-manager/` + sorted + `"--controller" | limit 10000`:                                                      "FLAG: --controllers=",
		`filter @logStream like /^kube-scheduler/` + sorted + `"FLAG" | limit 10000`:                                                                       "FLAG: --v=",
		`filter @logStream like /^kube-apiserver-audit/` + sorted + `'` + request + `' | limit 10000`:                                                      `"verb":"create"`,
		`filter objectRef.subresource = "approval" | display responseObject.status.conditions.0.type`:                                                      "Approved",
	} {
		l.eventually("there is an answer to "+query, func() error {
			out, talk, err := l.try("logs", "query", "--since", "24h", query)
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("it is %.300q%s", out, talk)
			}
			return err
		})
	}
	if _, talk, err := l.try("logs", "query", "filtre x"); err == nil || !strings.Contains(talk, "\n  filtre x\n  ^") {
		l.t.Errorf("%v: %s", err, talk)
	}
}

// streamsOfAll looks for a stream of each type.
func (l *logStore) streamsOfAll() {
	l.t.Helper()
	l.eventually("there is a stream of each log type", func() error {
		rows, err := l.rows(`* | stats by ("@logStream") count() n`)
		if err != nil {
			return err
		}
		var have []string
		for _, row := range rows {
			stream := row["@logStream"]
			have = append(have, stream[:max(strings.LastIndex(stream, "-"), 0)])
		}
		slices.Sort(have)
		return is(strings.Join(slices.Compact(have), " "), "authenticator kube-apiserver kube-apiserver-audit kube-controller-manager kube-scheduler")
	})
}

// isPrivate looks at who reaches the log store.
func (l *logStore) isPrivate() {
	l.t.Helper()
	store := statedir.LogStore(l.dir)
	for _, path := range []string{string(l.dir), filepath.Dir(store.Socket()), filepath.Dir(store.Data()), store.Data()} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o700 {
			l.t.Errorf("%s has mode %v: %v", path, info.Mode(), err)
		}
	}
	p := l.processes()[component.LogStore]
	if memory, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID)); err == nil {
		_, resident, _ := strings.Cut(string(memory), "VmRSS:")
		resident, _, _ = strings.Cut(resident, "\n")
		l.t.Logf("the log store has %s of memory", strings.TrimSpace(resident))
	}
	tcp, err := exec.CommandContext(l.t.Context(), "ss", "-H", "-l", "-t", "-u", "-n", "-p").CombinedOutput()
	if err != nil || strings.Contains(string(tcp), fmt.Sprintf("pid=%d,", p.PID)) {
		l.t.Errorf("the log store listens on\n%s%v", tcp, err)
	}
	stranger := exec.CommandContext(l.t.Context(), "test", "-e", store.Socket())
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := stranger.Run(); err == nil {
		l.t.Error("another user of the host gets to the socket")
	}
}

// killed makes requests while the log store and the service are killed.
func (l *logStore) killed() {
	l.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 150 {
			if out, err := l.kubectl("create", "configmap", fmt.Sprintf("on-%d", n)); err != nil {
				l.t.Errorf("%v: %s", err, out)
				return
			}
		}
	}()
	for _, name := range []string{component.LogStore, component.LogStore, "serve", component.LogStore, "serve"} {
		<-time.After(time.Duration(500+rand.IntN(2500)) * time.Millisecond)
		l.kill(name)
	}
	<-done
	if n := len(l.auditLines()); n < 150 {
		l.t.Errorf("the audit log has %d lines", n)
	}
}
