// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"net/http"
	"testing"
)

func TestReasonSurvivesAHeader(t *testing.T) {
	for _, want := range []Reason{
		{Rule: "no-entry", Saw: "arn:aws:iam::000000000000:role/r", Fix: "make one"},
		{Rule: "form/host", Saw: "\r\nX: y \"é\" \U0001F600 \x00\x7f"},
	} {
		h := http.Header{}
		writeReason(h, Decision{Status: http.StatusForbidden, Rule: want.Rule, Saw: want.Saw, Fix: want.Fix})
		for _, b := range []byte(h.Get(reasonHeader)) {
			if b < ' ' || b > '~' && b != 0x7f {
				t.Errorf("byte %x in a header", b)
			}
		}
		if got := ReadReason(h); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	h := http.Header{}
	writeReason(h, Decision{Status: http.StatusOK, Rule: "x"})
	if len(h) != 0 || ReadReason(h).Rule != "unknown" {
		t.Errorf("%v, %+v", h, ReadReason(h))
	}
	h.Set(reasonHeader, "{")
	if ReadReason(h).Rule != "unknown" {
		t.Error("what cannot be read has a reason")
	}
}
