// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorded is what journalctl --output=short-unix prints of a kubelet (systemd 252).
const recorded = `1763639988.123456 ip-10-0-0-1.eu-west-1.compute.internal systemd[1]: Started kubelet.service - Kubernetes Kubelet.
1763639990.000001 ip-10-0-0-1.eu-west-1.compute.internal kubelet[1201]: E1120 11:59:50.000000    1201 run.go:72] "command failed" err="failed"
                                                                         a second line
1763639991.500000 ip-10-0-0-1.eu-west-1.compute.internal kubelet: no number
-- Boot 0123 --
`

func TestParseJournal(t *testing.T) {
	t.Parallel()
	lines := parseJournal([]byte(recorded))
	var texts []string
	for _, line := range lines {
		texts = append(texts, line.Text)
	}
	want := []string{"Started kubelet.service - Kubernetes Kubelet.", `E1120 11:59:50.000000    1201 run.go:72] "command failed" err="failed"`, "a second line", "no number", "-- Boot 0123 --"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	if want := time.Unix(1763639990, 1000).UTC(); !lines[1].Time.Equal(want) || !lines[2].Time.Equal(want) {
		t.Errorf("%s, %s", lines[1].Time, lines[2].Time)
	}
}

// Whatever a journal holds, it is read, and no line is longer than what was there.
func FuzzParseJournal(f *testing.F) {
	f.Add(recorded)
	f.Add("1.000000 h p: \x00\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range parseJournal([]byte(text)) {
			if !strings.Contains(text, line.Text) {
				t.Errorf("%q is not in %q", line.Text, text)
			}
		}
	})
}

// A journalctl that prints too much, fails or hangs does not hold the explanation up.
func TestJournalctl(t *testing.T) {
	t.Parallel()
	script := func(body string) Journalctl {
		path := filepath.Join(t.TempDir(), "journalctl")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return Journalctl(path)
	}
	lines, err := script(`for a; do case $a in --since=@1763639000|--unit=kubelet.service|--lines=7) n=$((n+1));; esac; done; echo "1.000000 h p: $n"`).Lines(t.Context(), "kubelet.service", time.Unix(1763639000, 0), 7)
	if err != nil || len(lines) != 1 || lines[0].Text != "3" {
		t.Errorf("%v, %v", lines, err)
	}
	if _, err := script("exit 3").Lines(t.Context(), "kubelet.service", time.Time{}, 7); err == nil {
		t.Error("a failure is none")
	}
	began := time.Now()
	if _, err := script("sleep 60 &\nexec sleep 60").Lines(t.Context(), "kubelet.service", time.Time{}, 7); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 30*time.Second {
		t.Errorf("one that hangs: %v after %v", err, time.Since(began))
	}
	lines, err = script(`head -c 20000000 /dev/zero`).Lines(t.Context(), "kubelet.service", time.Time{}, 7)
	if err != nil || len(lines) != 0 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

// Errors of real connections have the words that the catalogue knows.
func TestCodeOf(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	at, err := HostProbes{}.Answer(t.Context(), server.URL+"/livez", authority)
	if err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("%s, %v", at, err)
	}
	other := httptest.NewTLSServer(http.NotFoundHandler())
	gone := other.URL
	other.Close()
	for name, test := range map[string]struct{ url, want string }{
		"refused":      {gone, "Refused"},
		"another name": {strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "NameMismatch"},
		"no name":      {"https://nobody.invalid", "NoSuchHost"},
	} {
		_, err := HostProbes{}.Answer(t.Context(), test.url, authority)
		if got := codeOf(err); got != test.want && got != "NoNameServer" { // a host without name servers cannot know
			t.Errorf("%s: %s: %v", name, got, err)
		}
	}
	if _, err := (HostProbes{}).Answer(t.Context(), server.URL, nil); codeOf(err) != "UnknownAuthority" {
		t.Errorf("another authority: %v", err)
	}
	if got := codeOf(x509.CertificateInvalidError{Reason: x509.Expired}); got != "NotValidNow" {
		t.Error(got)
	}
	if got := codeOf(errors.New("x")); got != "Failed" {
		t.Error(got)
	}
}

func TestHealthz(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	if err := (HostProbes{}).Healthz(t.Context(), server.URL); err != nil {
		t.Error(err)
	}
	status = http.StatusInternalServerError
	if err := (HostProbes{}).Healthz(t.Context(), server.URL); err == nil {
		t.Error("a kubelet that is not well is")
	}
}
