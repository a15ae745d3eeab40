// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/nodeconfig"
)

func TestTokensOfJoin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" abcdef.0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		j    joinCommand
		want string
	}{
		"flag":           {joinCommand{token: "abcdef.0123456789abcdef"}, "abcdef.0123456789abcdef"},
		"file":           {joinCommand{tokenFile: file}, "abcdef.0123456789abcdef"},
		"standard input": {joinCommand{token: "-"}, "ghijkl.0123456789abcdef"},
		"none":           {joinCommand{}, "."},
	} {
		c.j.Options = &terminal.Options{Streams: terminal.Streams{In: strings.NewReader("ghijkl.0123456789abcdef\nrest")}}
		got, err := c.j.readToken()
		if err != nil || got.Reveal() != c.want {
			t.Errorf("%s: %s, %v", name, got.Reveal(), err)
		}
	}
	for name, j := range map[string]joinCommand{
		"both":    {token: "abcdef.0123456789abcdef", tokenFile: file},
		"no file": {tokenFile: file + "x"},
		"no form": {token: "abcdef.neverShown09876aX"},
		"endless": {token: "-", Options: &terminal.Options{Streams: terminal.Streams{In: strings.NewReader(strings.Repeat("a", 1<<20))}}},
	} {
		if _, err := j.readToken(); err == nil || strings.Contains(err.Error(), "neverShown") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKubeadmsFlags(t *testing.T) {
	cmd := NewCommand(&terminal.Options{})
	err := cmd.ParseFlags([]string{
		"--discovery-token", "a", "--discovery-token-ca-cert-hash", "sha256:1", "--ca-cert-hash", "sha256:2", "--discovery-file", "f",
		"--discovery-token-unsafe-skip-ca-verification", "--ignore-preflight-errors", "swap,disk",
	})
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := cmd.Flags().GetStringArray("ca-cert-hash")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sha256:1", "sha256:2"}, hashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"token": "a", "discovery-file": "f", "ignore-preflight": "[swap,disk]", "discovery-token-unsafe-skip-ca-verification": "true"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, not %q", name, got, want)
		}
	}
}

func TestFlagsWinOverConfiguration(t *testing.T) {
	spec := nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{APIServerEndpoint: "https://10.0.0.1:6443"},
		Join:    nodeconfig.Join{Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:1"}, NodeName: "theirs"},
	}
	j := joinCommand{nodeName: "mine"}
	if err := j.fillIn(spec); err != nil {
		t.Fatal(err)
	}
	if j.endpoint != "10.0.0.1:6443" || j.nodeName != "mine" || j.token != spec.Join.Token || len(j.hashes) != 1 {
		t.Errorf("endpoint %s, name %s, hashes %v", j.endpoint, j.nodeName, j.hashes)
	}
	j = joinCommand{endpoint: "here:1", tokenFile: "f", hashes: []string{"sha256:2"}}
	if err := j.fillIn(spec); err != nil {
		t.Fatal(err)
	}
	if j.endpoint != "here:1" || j.token != "" || j.tokenFile != "f" || j.hashes[0] != "sha256:2" || j.nodeName != "theirs" {
		t.Errorf("endpoint %s, file %s, hashes %v", j.endpoint, j.tokenFile, j.hashes)
	}
}

// An address and a file that says where the cluster is are one too many: that is a mistake of the command line, told
// before anything is asked or changed.
func TestJoinByAnAddressAndAFile(t *testing.T) {
	cmd := NewCommand(&terminal.Options{Streams: terminal.Streams{In: strings.NewReader("")}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"10.0.0.1:6443", "--discovery-file", "cluster.yaml", "--token", "-"})
	err := cmd.ExecuteContext(t.Context())
	var usage terminal.UsageError
	if !errors.As(err, &usage) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--discovery-file") {
		t.Errorf("got %v", err)
	}
	j := joinCommand{endpoint: "here:1"}
	if err := j.fillIn(nodeconfig.Spec{Join: nodeconfig.Join{DiscoveryFile: "/cluster.yaml"}}); err != nil || j.file != "" {
		t.Errorf("the file of a NodeConfig wins over the command line: %q, %v", j.file, err)
	}
}

// No time at all is a mistake of the command line, and not of the network.
func TestJoinWithoutTime(t *testing.T) {
	for _, timeout := range []string{"0s", "0", "-1m"} {
		cmd := NewCommand(&terminal.Options{Streams: terminal.Streams{In: strings.NewReader(""), Err: io.Discard}})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"127.0.0.1:1", "--token", "abcdef.0123456789abcdef", "--ca-cert-hash", "sha256:" + strings.Repeat("0", 64), "--timeout", timeout})
		err := cmd.ExecuteContext(t.Context())
		var usage terminal.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "invalid --timeout") {
			t.Errorf("%s: %v", timeout, err)
		}
	}
}

// A join that finds no cluster in its time ends with what it has been waiting for, not with the end of the time.
func TestJoinSaysWhatItWaitedFor(t *testing.T) {
	j := joinCommand{
		Options: &terminal.Options{Streams: terminal.Streams{In: strings.NewReader(""), Err: io.Discard}}, endpoint: "127.0.0.1:1", token: "abcdef.0123456789abcdef",
		hashes: []string{"sha256:" + strings.Repeat("0", 64)}, timeout: time.Second,
	}
	r, err := j.request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), j.timeout) // of the whole join
	defer cancel()
	if _, err := r.Discover(ctx); err == nil || !strings.Contains(err.Error(), "gave up after 400ms: https://127.0.0.1:1 does not answer") {
		t.Errorf("got %v", err)
	}
}

// Invalid flags are refused at once, before the host is looked at.
func TestJoinRefusesWhatCannotWork(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		endpoint string
		hashes   []string
		want     string
	}{
		"not https":    {"http://10.0.0.1:443", []string{hash}, "is not the address of an API server"},
		"no hash":      {"10.0.0.1:443", nil, "a token alone does not tell the cluster from somebody else"},
		"a wrong hash": {"10.0.0.1:443", []string{"foo"}, `the CA hash "foo" is not of the form sha256:`},
	} {
		j := joinCommand{Options: &terminal.Options{Streams: terminal.Streams{In: strings.NewReader(""), Err: io.Discard}}, token: "abcdef.0123456789abcdef", endpoint: tc.endpoint, hashes: tc.hashes}
		_, err := j.request(t.Context())
		var usage terminal.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The cluster is known by the certificate authority of the NodeConfig, which must fit the hash.
func TestJoinPinsTheAuthorityOfTheConfiguration(t *testing.T) {
	authority, _ := pkitest.Authority(t, "kubernetes", time.Now(), time.Hour)
	told := nodeconfig.Spec{Cluster: nodeconfig.Cluster{CertificateAuthority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})}}
	var j joinCommand
	if err := j.fillIn(told); err != nil || len(j.hashes) != 1 || j.hashes[0] != discovery.Pin(authority) {
		t.Errorf("got %v, %v", j.hashes, err)
	}
	j = joinCommand{hashes: []string{strings.ToUpper(discovery.Pin(authority))}}
	if err := j.fillIn(told); err != nil {
		t.Error(err)
	}
	j = joinCommand{hashes: []string{"sha256:" + strings.Repeat("0", 64)}}
	if err := j.fillIn(told); err == nil || !strings.Contains(err.Error(), "another cluster's") {
		t.Errorf("got %v", err)
	}
}

func TestStepsAreShown(t *testing.T) {
	var out bytes.Buffer
	showStep(&out, hostjoin.Step{At: 1234 * time.Millisecond, Name: "node", State: hostjoin.Waiting, Text: "not Ready yet: \x1b[31mred"})
	showStep(&out, hostjoin.Step{At: 12340 * time.Millisecond, Name: "client CSR", State: hostjoin.Done, Text: "issued"})
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "   1.23s  node           … not Ready yet") || !strings.HasSuffix(got, "  12.34s  client CSR     issued\n") {
		t.Errorf("%q", got)
	}
}
