// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/miekg/pkcs11"
)

func TestReadRequest(t *testing.T) {
	read := func(s string) (request, error) {
		return readRequest(bufio.NewReaderSize(strings.NewReader(s), maxLine))
	}
	r, err := read(`{"id":7,"hash":"SHA-256","padding":"pss","salt":32,"digest":"AQID"}` + "\n")
	if err != nil || r.ID != 7 || r.Hash != "SHA-256" || r.Padding != "pss" || r.Salt != 32 || string(r.Digest) != "\x01\x02\x03" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, bad := range []string{
		"\n", "{}{}\n", `{"id":1} x` + "\n", `{"id":-1}` + "\n", `{"id":1,"pin":"1"}` + "\n", `{"id":1,"digest":"?"}` + "\n", "[]\n",
		strings.Repeat(" ", maxLine) + "{}\n",
	} {
		if _, err := read(bad); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	for _, end := range []string{"", `{"id":1`} {
		if _, err := read(end); !errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", end, err)
		}
	}
}

func TestKindsOfErrors(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want kind
	}{
		{errors.New("x"), refused},
		{pkcs11.Error(pkcs11.CKR_KEY_FUNCTION_NOT_PERMITTED), refused},
		{lost{fmt.Errorf("x: %w", pkcs11.Error(pkcs11.CKR_DEVICE_REMOVED))}, unavailable},
		{pkcs11.Error(pkcs11.CKR_PIN_LOCKED), badPIN},
		{fail(badPIN, "x"), badPIN},
		{lost{fail(unavailable, "x")}, unavailable},
	} {
		if got := kindOf(tc.err); got != tc.want {
			t.Errorf("%v: %q, not %q", tc.err, got, tc.want)
		}
	}
}
