// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"bufio"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/signer"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// misbehave is a child that does not keep to the protocol. It knows its own public key, for greetings that are in
// order.
func misbehave(how string) {
	how, public, _ := strings.Cut(how, " ")
	hello := fmt.Sprintf(`{"version":1,"public":%q}`+"\n", public)
	in := bufio.NewReader(os.Stdin)
	request := func() (id uint64) {
		var r struct{ ID uint64 }
		line, err := in.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &r) != nil {
			panic("no request")
		}
		return r.ID
	}
	switch how {
	case "no-json":
		fmt.Println("Welcome!")
	case "other-version":
		fmt.Println(`{"version":2}`)
	case "unknown-field":
		fmt.Println(`{"version":1,"pin":"1"}`)
	case "no-key":
		fmt.Println(`{"version":1,"public":"AAAA"}`)
	case "long-greeting":
		fmt.Println(strings.Repeat(" ", 1<<20))
	case "empty-line":
		fmt.Println()
	case "ends":
		return
	case "panics":
		panic("no")
	case "unasked":
		fmt.Print(hello, `{"id":1000}`, "\n")
	case "other-request":
		fmt.Print(hello)
		fmt.Printf(`{"id":%d,"signature":"AAAA"}`+"\n", request()+1)
	case "two-on-a-line":
		fmt.Print(hello)
		id := request()
		fmt.Printf(`{"id":%d} {"id":%d}`+"\n", id, id)
	case "twice":
		fmt.Print(hello)
		id := request()
		fmt.Printf(`{"id":%d,"error":{"message":"x"}}`+"\n"+`{"id":%d,"error":{"message":"x"}}`+"\n", id, id)
	case "long-answer":
		fmt.Print(hello)
		request()
		fmt.Println(strings.Repeat("x", 1<<20))
	case "wrong-signature":
		fmt.Print(hello)
		fmt.Printf(`{"id":%d,"signature":"AAAA"}`+"\n", request())
	case "never-reads", "stays":
		fmt.Print(hello)
		<-time.After(time.Hour) // without a timer, Go takes it for a deadlock
	case "closes-output":
		fmt.Print(hello)
		request()
		_ = os.Stdout.Close()
	case "half-a-line":
		fmt.Print(hello)
		request()
		fmt.Print(`{"id":`)
		return
	}
	_, _ = io.Copy(io.Discard, in)
}

// misbehaving has children be of that kind.
func misbehaving(t *testing.T, how string, key crypto.Signer) *signer.PKCS11 {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a second otherwise
	t.Setenv(envChild, how+" "+base64.StdEncoding.EncodeToString(der))
	p, err := signer.NewPKCS11(signer.PKCS11Config{
		Program: os.Args[0], Module: "/m", Token: "t", KeyLabel: "k", PINFile: "/p", Timeout: 300 * time.Millisecond, Logger: discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestAChildThatStays(t *testing.T) {
	p := misbehaving(t, "stays", pkitest.Key(t))
	if _, err := p.Key(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := p.PID()
	p.Close()
	if !ended(pid) {
		t.Error("the child is there still")
	}
}

func TestAChildThatDoesNotBehave(t *testing.T) {
	key := pkitest.Key(t)
	for how, want := range map[string]string{
		"no-json":         "does not keep to the protocol",
		"other-version":   "version 2, not 1",
		"unknown-field":   "does not keep to the protocol",
		"no-key":          "reading the public key",
		"long-greeting":   "a line of more than 16384 bytes",
		"empty-line":      "an empty line",
		"ends":            "ended (exit status 0)",
		"panics":          "ended (exit status 2): panic: no",
		"unasked":         "it answered request 1000, ",
		"other-request":   "it answered request 2, ",
		"two-on-a-line":   "more than one object on a line",
		"twice":           "it answered request 1, ",
		"long-answer":     "a line of more than 16384 bytes",
		"wrong-signature": "verifying the signature just made: ",
		"never-reads":     "does not answer",
		"closes-output":   "does not answer",
		"half-a-line":     "ended (exit status 0)",
	} {
		t.Run(how, func(t *testing.T) {
			p := misbehaving(t, how, key)
			ca := authority(t, "ca", key)
			d := newDisk(t)
			d.replace(d.cert, certPEM(ca))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := signer.New(ctx, signer.Config{Certificate: d.cert, Key: p.Key, Logger: discard()})
			if err == nil {
				_, err = s.Sign(ctx, prepare(t, ca))
			}
			if how == "twice" { // the first answer is as good as any
				until(t, "the second is noticed", func() bool { return p.PID() == 0 })
				_, err = p.Key(ctx)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if how == "unasked" && !errors.Is(err, signer.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
}
