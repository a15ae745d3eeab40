// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// launched is a metadata service for one machine, whose user data may change.
type launched struct {
	mutex sync.Mutex
	data  []byte
}

func (l *launched) Lookup(address netip.Addr) (imds.Instance, error) {
	return imds.Instance{ID: "i-0000000000000000a", Type: "m5.large", PrivateIP: address, IPv6: netip.MustParseAddr("fd00:1::5"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, PrivateDNSName: "ip-127-0-0-1.muster.test", HopLimit: 1, Region: "us-east-1", Zone: "us-east-1a", ZoneID: "use1-az1"}, nil
}

func (l *launched) UserData(string) ([]byte, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.data == nil {
		return nil, imds.ErrNotFound
	}
	return l.data, nil
}

func (l *launched) set(data []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.data = data
}

func (l *launched) Role(context.Context, string) (imds.Role, error) {
	return imds.Role{Name: "muster-node"}, nil
}

// serve serves it on a loopback port.
func (l *launched) serve(t *testing.T) (endpoint string) {
	t.Helper()
	return serveMetadata(t, imds.ServerConfig{Directory: l})
}

// serveRole serves it with a role.
func (l *launched) serveRole(t *testing.T) (endpoint string) {
	t.Helper()
	return serveMetadata(t, imds.ServerConfig{Directory: l, Credentials: l})
}

func serveMetadata(t *testing.T, config imds.ServerConfig) (endpoint string) {
	t.Helper()
	config.Key, config.Log = make([]byte, 32), slog.New(slog.DiscardHandler)
	server, err := imds.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func newAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func complete(t *testing.T) nodeconfig.Spec {
	t.Helper()
	return nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{Name: "test", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: newAuthority(t), CIDR: "10.100.0.0/16"},
		Join:    nodeconfig.Join{Token: "abcdef.0123456789abcdef"},
	}
}

func document(t *testing.T, spec nodeconfig.Spec) []byte {
	t.Helper()
	raw, err := nodeconfig.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// facts are those of some machine.
func facts() (render.Facts, error) {
	return render.Facts{CPUs: 1, MemoryBytes: 1 << 30, CgroupVersion: 2}, nil
}

// mention reports whether a text is in any of the files.
func mention(files []render.File, text string) bool {
	return slices.ContainsFunc(files, func(file render.File) bool { return bytes.Contains(file.Content, []byte(text)) })
}

// The agent has its identity and its user data from the metadata service, and adds what is in the directory of
// drop-ins.
func TestAsk(t *testing.T) {
	l := &launched{}
	a := newAgent(t)
	a.metadata = imds.NewClient(l.serve(t))
	if !a.identify(t.Context()) || a.instance.ID != "i-0000000000000000a" || a.instance.Type != "m5.large" || a.instance.PrivateDNSName != "ip-127-0-0-1.muster.test" {
		t.Errorf("it takes itself for %+v", a.instance)
	}
	nothing, err := a.ask(t.Context())
	if err != nil || len(nothing.userData) > 0 || len(nothing.dropIns) > 0 {
		t.Errorf("told nothing: %+v, %v", nothing, err)
	}
	l.set([]byte("one"))
	for name, content := range map[string]string{"20-b.yaml": "b: 2\n", "10-a.yml": "a: 1\n", "notes.txt": "c: 3\n"} {
		if err := os.WriteFile(filepath.Join(a.config.DropInDir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, err := a.ask(t.Context())
	if err != nil || string(first.userData) != "one" || len(first.dropIns) != 2 || string(first.dropIns[0].Content) != "a: 1\n" {
		t.Errorf("told %+v, %v", first, err)
	}
	again, err := a.ask(t.Context())
	if err != nil || !again.equal(first) || again.equal(nothing) {
		t.Errorf("told the same it says otherwise: %v", err)
	}
	if err := os.WriteFile(filepath.Join(a.config.DropInDir, "20-b.yaml"), []byte("b: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := a.ask(t.Context()); err != nil || other.equal(first) {
		t.Errorf("another drop-in goes unnoticed: %v", err)
	}
}

func TestSettle(t *testing.T) {
	say := func(string) {}
	good := complete(t)
	if spec, err := settle(t.Context(), good, false, say); err != nil || spec.Join.Token != good.Join.Token {
		t.Errorf("complete: %v", err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" abcdef.0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := good
	fromFile.Join = nodeconfig.Join{TokenFile: file}
	if spec, err := settle(t.Context(), fromFile, false, say); err != nil || spec.Join.Token != "abcdef.0123456789abcdef" || spec.Join.TokenFile != "" {
		t.Errorf("token from a file: %+v, %v", spec.Join, err)
	}
	missing := good
	missing.Join = nodeconfig.Join{TokenFile: file + ".gone"}
	if _, err := settle(t.Context(), missing, false, say); err == nil || !strings.Contains(err.Error(), "spec.join.tokenFile") {
		t.Errorf("no such file: %v", err)
	}
	if _, err := settle(t.Context(), missing, true, say); err != nil {
		t.Errorf("a machine that has joined needs no token: %v", err)
	}
	if err := os.WriteFile(file, []byte("nonsense-with-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := settle(t.Context(), fromFile, false, say); err == nil || strings.Contains(err.Error(), "nonsense-with-secret") {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := settle(t.Context(), nodeconfig.Spec{}, false, say); err == nil || !strings.Contains(err.Error(), "spec.cluster.name") {
		t.Errorf("nothing at all: %v", err)
	}
	// The cluster is looked for where the NodeConfig says it is; there it is refused by the API server.
	found := good
	found.Cluster.CertificateAuthority = nil
	found.Cluster.APIServerEndpoint = "https://127.0.0.1:1"
	found.Join.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := settle(ctx, found, false, say); err == nil || strings.Contains(err.Error(), "0123456789abcdef") {
		t.Errorf("discovery where nothing is: %v", err)
	}
}

// A person runs init by hand: other sources are left for the agent, the user data is written at once, phases can be
// left out.
func TestInit(t *testing.T) {
	l := &launched{}
	dir := t.TempDir()
	file := filepath.Join(dir, "node.yaml")
	if err := os.WriteFile(file, document(t, complete(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	const wrote = "wrote (for i-0000000000000000a: true, joined: false)"
	var did []string
	config := InitConfig{
		Sources: []string{file}, Metadata: l.serve(t), DropInDir: filepath.Join(dir, "nodeadm.d"), Root: dir, Say: func(string) {},
		Facts: facts,
		Write: func(files []render.File, joined bool, _ func(string)) error {
			did = append(did, fmt.Sprintf("wrote (for i-0000000000000000a: %t, joined: %t)", mention(files, "aws:///us-east-1a/i-0000000000000000a"), joined))
			return nil
		},
		Restart: func(context.Context, render.Layout) error { did = append(did, "restarted"); return nil },
	}
	run := func(want ...string) {
		t.Helper()
		did = nil
		if err := Init(t.Context(), config); err != nil || !slices.Equal(did, want) {
			t.Errorf("did %q, want %q; %v", did, want, err)
		}
	}
	run("restarted")
	left := filepath.Join(config.DropInDir, "90-init.yaml")
	if info, err := os.Stat(left); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s holds a token: %v, %v", left, info, err)
	}
	config.Sources = []string{"imds://user-data"}
	l.set(document(t, complete(t)))
	run(wrote, "restarted")
	config.Sources = append(config.Sources, "file://"+config.DropInDir)
	run(wrote, "restarted")
	config.Skip = []string{PhaseRun}
	run(wrote)
	config.Skip = []string{PhaseConfig}
	run("restarted")
	config.Skip = []string{"sleep"}
	if err := Init(t.Context(), config); err == nil {
		t.Error("an unknown phase was skipped")
	}
	config.Skip = nil
	l.set([]byte("kind: NodeConfig\n"))
	did = nil
	if err := Init(t.Context(), config); err == nil || len(did) > 0 {
		t.Errorf("bad user data: %v, did %q", err, did)
	}
}
