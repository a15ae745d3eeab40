// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"context"
	"crypto"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/signer"
)

// until polls.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ended reports whether a process has, be it that nobody has asked for its end yet.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.HasPrefix(string(stat[strings.LastIndex(string(stat), ")"):]), ") Z")
}

func TestTheChildIsKilledBetweenSignatures(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	p := k.open()
	key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
	for range 3 {
		if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
			t.Fatal(err)
		}
		pid := p.PID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "the end is noticed", func() bool { return p.PID() != pid })
		// A caller waits now for the next child, which is started at once.
	}
	if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
		t.Error(err)
	}
}

func TestTheChildIsKilledDuringSignatures(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	p := k.open()
	key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
	var signed, failed atomic.Int64
	var stop atomic.Bool
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for !stop.Load() {
				switch err := signs(t.Context(), key, digest, crypto.SHA256); {
				case err == nil:
					signed.Add(1)
				case errors.Is(err, signer.ErrUnavailable):
					failed.Add(1)
				default:
					t.Errorf("an error that does not say that it passes: %v", err)
					return
				}
			}
		})
	}
	for range 5 {
		before := signed.Load()
		until(t, "signatures are made", func() bool { return signed.Load() > before+20 && p.PID() != 0 })
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	before := signed.Load()
	until(t, "it goes on", func() bool { return signed.Load() > before+20 })
	stop.Store(true)
	group.Wait()
	if failed.Load() == 0 {
		t.Error("no signature was under way when the child was killed: the test shows nothing")
	}
	t.Logf("%d signatures, %d to be tried again", signed.Load(), failed.Load())
}

func TestFaultsOfTheLibrary(t *testing.T) {
	for _, tc := range []struct {
		fault, want string
		samePID     bool
	}{
		{"crash", "SIGSEGV", false},
		{"hang", "does the token hang?", false},
		{"removed", "CKR_DEVICE_REMOVED", false},
		{"memory", "CKR_DEVICE_MEMORY", true},
		{"lose", "", true}, // all sessions: they are opened again, and nobody notices
	} {
		t.Run(tc.fault, func(t *testing.T) {
			k := newToken(t)
			k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
			if tc.fault == "hang" { // else a busy host is taken for a token that hangs
				k.config.Timeout = 500 * time.Millisecond
			}
			p := k.open()
			key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
			if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
				t.Fatal(err)
			}
			pid := p.PID()
			k.fault(tc.fault)
			err := signs(t.Context(), key, digest, crypto.SHA256)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.want != "" && (!errors.Is(err, signer.ErrUnavailable) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if !tc.samePID {
				until(t, "there is another child", func() bool { return p.PID() != pid })
			}
			until(t, "it signs again", func() bool { return signs(t.Context(), key, digest, crypto.SHA256) == nil })
			if tc.samePID && p.PID() != pid {
				t.Errorf("the child was %d and is %d", pid, p.PID())
			}
			if n := k.logins(); n != 2 && tc.fault != "memory" {
				t.Errorf("%d logins", n)
			}
		})
	}
}

func TestSessionsAreLostWhileManySign(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	p := k.open()
	key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
	for range 5 {
		until(t, "it signs", func() bool { return signs(t.Context(), key, digest, crypto.SHA256) == nil })
		pid := p.PID()
		var group sync.WaitGroup
		var good atomic.Int64
		for range 16 {
			group.Go(func() {
				for range 10 {
					if err := signs(t.Context(), key, digest, crypto.SHA256); err == nil {
						good.Add(1)
					} else if !errors.Is(err, signer.ErrUnavailable) {
						t.Error(err)
					}
				}
			})
		}
		k.fault("lose")
		group.Wait()
		// SoftHSM may fail for good while it opens its sessions again; then its program was started anew, which takes a
		// while.
		if good.Load() < 80 && p.PID() == pid {
			t.Errorf("%d signatures of 160", good.Load())
		}
	}
}

func TestATokenThatHoldsAnotherKeyByNow(t *testing.T) {
	k := newToken(t)
	first, second := ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P256())
	k.put(first, "ca", "01")
	p := k.open()
	d := newDisk(t)
	d.replace(d.cert, certPEM(authority(t, "first", first)))
	s, err := signer.New(t.Context(), signer.Config{Certificate: d.cert, Key: p.Key, Logger: k.config.Logger})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := s.Issuer(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// A new token takes the old one's place, and the library is started anew.
	if err := os.RemoveAll(filepath.Join(k.dir, "tokens")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.dir, "tokens"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.util("--init-token", "--free", "--label", "muster", "--so-pin", "12345678", "--pin", pin)
	k.put(second, "ca", "01")
	old := p.PID()
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "a new child signs", func() bool { return p.PID() != 0 && p.PID() != old })
	if _, err := s.Sign(t.Context(), prepare(t, issuer)); !errors.Is(err, signer.ErrUnavailable) || !strings.Contains(err.Error(), "another key by now") {
		t.Errorf("got %v", err)
	}
	next := authority(t, "second", second)
	d.replace(d.cert, certPEM(next))
	signsAs(t, s, next)
}

func TestTheChildAsAProcess(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	t.Setenv("MUSTER_STATE", "/of/the/parent")
	p := k.open()
	key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
	pid := p.PID()
	about := func(file string) string {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			t.Error(err)
		}
		return string(raw)
	}
	if !strings.Contains(about("cmdline"), "--pin-file") || strings.Contains(about("cmdline"), pin) {
		t.Errorf("arguments %q", about("cmdline"))
	}
	if e := about("environ"); strings.Contains(e, pin) || strings.Contains(e, "MUSTER_") || !strings.Contains(e, "SOFTHSM2_CONF=") {
		t.Errorf("environment %q", e)
	}
	_, core, _ := strings.Cut(about("limits"), "Max core file size")
	if got := strings.Fields(core); len(got) < 2 || got[0] != "0" || got[1] != "0" {
		t.Errorf("it may leave its memory in a file: %s", about("limits"))
	}
	// A signal to the parent's process group must not end the child before the parent has finished its signatures.
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group %d, %v", group, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil || p.PID() != pid {
		t.Errorf("now %d instead of %d, %v", p.PID(), pid, err)
	}
}

func TestSignEndsWithItsContext(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	p := k.open()
	key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
	k.fault("hang")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := signs(ctx, key, digest, crypto.SHA256); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, signer.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	// The session that hangs is one of sixteen: others go on, and one login is for all.
	if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
		t.Error(err)
	}
	if n := k.logins(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	goroutines := runtime.NumGoroutine()
	files := openFiles(t)
	for _, fault := range []string{"", "hang"} {
		p := k.open()
		key, digest := k.key(p), digestOf(t, crypto.SHA256, "a")
		if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
			t.Fatal(err)
		}
		pid := p.PID()
		if fault != "" {
			k.fault(fault)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := signs(ctx, key, digest, crypto.SHA256); err == nil {
				t.Error("it did not hang")
			}
			cancel()
		}
		p.Close()
		if !ended(pid) {
			t.Error("the child is there still")
		}
		if err := signs(t.Context(), key, digest, crypto.SHA256); !errors.Is(err, signer.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	until(t, "all files are closed", func() bool { return openFiles(t) <= files })
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The parent, which closes its input, may be gone: it ends by itself, with a library that hangs too.
func TestAHangingChildEndsWithItsInput(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	cmd := exec.Command(k.config.Program, "--module", k.config.Module, "--token", "muster", "--key-label", "ca", "--pin-file", k.config.PINFile)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // if it did not end
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	k.fault("hang")
	if _, err := fmt.Fprintf(in, `{"id":1,"hash":"SHA-256","digest":%q}`+"\n", base64.StdEncoding.EncodeToString(make([]byte, 32))); err != nil {
		t.Fatal(err)
	}
	until(t, "it hangs", func() bool { _, err := os.Stat(filepath.Join(k.dir, "next")); return err != nil })
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "it ends", func() bool { return ended(cmd.Process.Pid) })
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// parent is a program that keeps signing until it is killed.
func parent(ctx context.Context, pinFile string) error {
	p, err := signer.NewPKCS11(signer.PKCS11Config{
		Program: os.Args[1], Module: os.Args[2], Token: "muster", KeyLabel: "ca", PINFile: pinFile, Logger: discard(),
	})
	if err != nil {
		return err
	}
	key, err := p.Key(ctx)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := key.Sign(ctx, make([]byte, 32), crypto.SHA256); err != nil {
			return err
		}
		if i == 10 {
			fmt.Println(p.PID())
		}
	}
}

func TestTheChildEndsWithItsParent(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	cmd := exec.Command(os.Args[0], k.config.Program, k.config.Module)
	cmd.Env = append(os.Environ(), envParent+"="+k.config.PINFile)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	until(t, "the child has ended", func() bool { return ended(child) })
}
