// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/platform/statedir"
)

// world is an installation as all commands' tests have it.
func world(t *testing.T) *clitest.Bench {
	t.Helper()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	for path, content := range map[string]string{"clusters/home/cluster.yaml": "kind: Cluster\n", "layout": "3\n"} {
		path = filepath.Join(b.O.StateDir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// nobodyGetsIn stands for a cluster that does not answer.
func nobodyGetsIn(*terminal.Options) (*kinds.Client, error) {
	return nil, errors.New("nothing answers")
}

func noon() time.Time { return clitest.Noon }

// The command prints an address, by which a browser gets pages and data of the installation, and what it reads is on record.
func TestConsole(t *testing.T) {
	b := world(t)
	out, in := io.Pipe()
	o := *b.O
	o.Out = in
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	opened := make(chan string, 1)
	cmd := &consoleCommand{Options: &o, planes: b.Planes, now: noon, entries: nobodyGetsIn, show: func(_ context.Context, file string) error {
		raw, err := os.ReadFile(file)
		opened <- string(raw)
		return err
	}}
	go func() { ended <- b.Run(ctx, cmd.command(), "--open") }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	if !strings.HasPrefix(address, "http://127.") || strings.HasPrefix(address, "http://127.0.") {
		t.Fatalf("the address is %s", address)
	}
	base, _, _ := strings.Cut(address, "/enter/")
	if page := <-opened; !strings.Contains(page, base+"/enter/") || strings.Contains(page, address) {
		t.Errorf("the browser is shown %s, which has not a ticket of its own", page)
	}
	entered := get(t, address, nil)
	for path, want := range map[string]string{"/": clitest.SecondMachine, "/machines/" + clitest.FirstNode: "1\u202f234 ms", "/api/objects/nodegroups/default": `"desiredSize": 2`, "/api/explain/machine/" + clitest.FirstMachine: `"verdict": "NotKnown"`, "/certificates": "csr-8x2vq"} {
		if got := get(t, base+path, entered.cookies); got.status != "200 OK" || !strings.Contains(got.body, want) {
			t.Errorf("%s: %s %s", path, got.status, got.body)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("interrupted, it says %v", err)
	}
	var commands []string
	raw, err := os.ReadFile(statedir.Dir(o.StateDir).Log(readaudit.LogName))
	if err != nil {
		t.Fatal(err)
	}
	for read := range strings.Lines(string(raw)) {
		var r readaudit.Read
		if err := json.Unmarshal([]byte(read), &r); err != nil || r.With != "muster console" || r.By.PID != os.Getpid() {
			t.Errorf("a line of the record is %s: %v", read, err)
		}
		commands = append(commands, r.Command)
	}
	if len(commands) != 6 || commands[0] != "begin" {
		t.Errorf("on record are %q", commands)
	}
}

// answer is what a server answered.
type answer struct {
	status  string
	body    string
	cookies []*http.Cookie
}

func get(t *testing.T, address string, cookies []*http.Cookie) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.Status, string(raw), response.Cookies()}
}

func TestSource(t *testing.T) {
	b := world(t)
	asker, err := explain.NewAsker(b.O, b.Planes, noon)
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	s := &source{Options: b.O, planes: b.Planes, asker: asker, dir: statedir.Dir(b.O.StateDir), now: noon, entries: nobodyGetsIn, recorded: func(context.Context, *terminal.Options) ([]issued.Entry, error) {
		loads++
		return []issued.Entry{{Node: "n", Signer: "kubernetes.io/kubelet-serving", Serial: "old"}, {Node: "n", Signer: "kubernetes.io/kubelet-serving", Serial: "new", CSR: "csr-1"}, {Subject: "me", Signer: "kubernetes.io/kube-apiserver-client"}}, nil
	}}
	for range 3 {
		read, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := read.Facts()
		if len(f.Machines) != 2 || len(f.Of["home"].Nodes) != 1 || len(f.Of["home"].Reviews) != 2 || len(f.Wrong.Unseen) == 0 { // there are no authorities
			t.Errorf("it reads %d machines, %d nodes, %d requests, unseen %v", len(f.Machines), len(f.Of["home"].Nodes), len(f.Of["home"].Reviews), f.Wrong.Unseen)
		}
		var got []view.Certificate
		for _, c := range f.Of["home"].Certificates {
			got = append(got, view.Certificate{Owner: c.Owner, Serial: c.Serial, Request: c.Request})
		}
		if diff := cmp.Diff([]view.Certificate{{Owner: "me", Request: "not named"}, {Owner: "n", Serial: "new", Request: "csr-1"}}, got); diff != "" {
			t.Errorf("certificates (-want +got):\n%s", diff)
		}
	}
	if loads != 1 {
		t.Errorf("the record was read %d times in a moment", loads)
	}
	for kind, want := range map[string]string{"secrets": "unknown kind", "machines": ""} {
		if _, err := s.Objects(t.Context(), kind, "", ""); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := s.Logs(t.Context(), clitest.FirstMachine, 10, false, io.Discard); err == nil {
		t.Error("a machine without logs has some")
	}
}

// Whatever chance says, the address is in the range that no account and no balancer has.
func TestOwnLoopback(t *testing.T) {
	for _, chance := range [][3]byte{{}, {62, 0, 253}, {63, 255, 254}, {255, 255, 255}} {
		a := ownLoopback(chance)
		if b := a.As4(); !a.IsLoopback() || b[1] < 1 || b[1] > 63 || b[3] < 1 || b[3] > 254 {
			t.Errorf("%#x: %s", chance, a)
		}
	}
}
