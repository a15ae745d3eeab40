// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"bytes"
	"cmp"
	"crypto"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster.dev/muster/internal/certificates/signer"
)

const (
	pin      = "84067315"
	otherPIN = "11223344"
)

// built is what tests with tokens need.
type built struct {
	dir            string
	once           sync.Once
	child, library string
	err            error
}

func (b *built) need(t *testing.T) {
	t.Helper()
	// go test takes results from its cache unless something changed that the test itself looked at.
	for _, pattern := range []string{"../../../pkcs11/*", "testdata/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			if _, err := os.Stat(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.once.Do(func() {
		b.child, b.library = filepath.Join(b.dir, "muster-pkcs11"), filepath.Join(b.dir, "faulty.so")
		// As the build builds it: then the compiler's work is done already.
		out, err := exec.Command("sh", "-c", `set -e
export GOWORK=off CGO_ENABLED=1 GOFLAGS=
go -C ../../../pkcs11 build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$1" .
gcc -shared -fPIC -O1 -w -I "$(go -C ../../../pkcs11 list -m -f '{{.Dir}}' github.com/miekg/pkcs11)" -o "$2" testdata/faulty.c -ldl`,
			"sh", b.child, b.library).CombinedOutput()
		if err != nil {
			b.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if b.err != nil {
		t.Fatalf("building what tests with tokens need: %v", b.err)
	}
}

// token is a SoftHSM token in a directory of its own, with a faulty library in front of it.
type token struct {
	t      *testing.T
	dir    string
	config signer.PKCS11Config
	log    safeBuffer
}

// safeBuffer is written to and read at once.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func softHSM(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("SOFTHSM2_MODULE"), "/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so"} {
		if _, err := os.Stat(cmp.Or(name, "/none")); err == nil {
			return name
		}
	}
	t.Fatal("SoftHSM is not installed: tools/testneeds.sh installs what tests need")
	return ""
}

// newToken makes a token without keys.
func newToken(t *testing.T) *token {
	t.Helper()
	programs.need(t)
	k := &token{t: t, dir: t.TempDir()}
	k.write("softhsm2.conf", "directories.tokendir = "+k.dir+"/tokens\n")
	k.write("pin", pin+"\n")
	if err := os.Mkdir(filepath.Join(k.dir, "tokens"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOFTHSM2_CONF", filepath.Join(k.dir, "softhsm2.conf"))
	t.Setenv("FAULTY_MODULE", softHSM(t))
	t.Setenv("FAULTY_DIRECTORY", k.dir)
	k.util("--init-token", "--free", "--label", "muster", "--so-pin", "12345678", "--pin", pin)
	k.config = signer.PKCS11Config{
		Program: programs.child, Module: programs.library, Token: "muster", KeyLabel: "ca", PINFile: filepath.Join(k.dir, "pin"),
		Logger: slog.New(slog.NewTextHandler(&k.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	t.Cleanup(func() {
		if strings.Contains(k.log.String(), pin) {
			t.Error("the log shows the PIN")
		}
		if t.Failed() {
			t.Logf("log:\n%s", k.log.String())
		}
	})
	return k
}

func (k *token) write(name, data string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(data), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *token) util(args ...string) {
	k.t.Helper()
	if out, err := exec.Command("softhsm2-util", args...).CombinedOutput(); err != nil {
		k.t.Fatalf("softhsm2-util %q: %v\n%s", args, err, out)
	}
}

// put imports a key; the token then holds both halves.
func (k *token) put(key crypto.Signer, label, id string) {
	k.t.Helper()
	k.write("import.pem", string(keyPEM(k.t, key)))
	k.util("--import", filepath.Join(k.dir, "import.pem"), "--token", "muster", "--label", label, "--id", id, "--pin", pin)
	if err := os.Remove(filepath.Join(k.dir, "import.pem")); err != nil {
		k.t.Fatal(err)
	}
}

// fault makes the next signature of the token fail in that way.
func (k *token) fault(name string) {
	k.t.Helper()
	k.write("next.new", name)
	if err := os.Rename(filepath.Join(k.dir, "next.new"), filepath.Join(k.dir, "next")); err != nil {
		k.t.Fatal(err)
	}
}

// logins counts attempts, successful or not.
func (k *token) logins() int {
	k.t.Helper()
	raw, err := os.ReadFile(filepath.Join(k.dir, "logins"))
	if err != nil && !os.IsNotExist(err) {
		k.t.Fatal(err)
	}
	return len(raw)
}

// open starts the child.
func (k *token) open() *signer.PKCS11 {
	k.t.Helper()
	p, err := signer.NewPKCS11(k.config)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(p.Close)
	return p
}

// key is the key of a token that is in order.
func (k *token) key(p *signer.PKCS11) signer.Key {
	k.t.Helper()
	key, err := p.Key(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return key
}
