// SPDX-License-Identifier: Apache-2.0

package userdata_test

import (
	"bytes"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/userdata"
)

// Written user data is read, whatever it is.
func roundTrip(t *testing.T, parts []userdata.Part) {
	t.Helper()
	raw, err := userdata.Write(parts)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := userdata.Write(parts); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("written twice it differs: %v", err)
	}
	if len(raw) > userdata.MaxRaw {
		return
	}
	got, err := userdata.Read(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if len(got) != len(parts) {
		t.Fatalf("%d parts were written, %d read:\n%s", len(parts), len(got), raw)
	}
	for i := range parts {
		if got[i].MediaType != parts[i].MediaType || !bytes.Equal(got[i].Content, parts[i].Content) {
			t.Errorf("part %d is %s %q, want %s %q", i+1, got[i].MediaType, got[i].Content, parts[i].MediaType, parts[i].Content)
		}
	}
}

func TestWrite(t *testing.T) {
	const script, config = "text/x-shellscript", "application/node.eks.aws"
	for name, parts := range map[string][]userdata.Part{
		"one":             {{MediaType: config, Content: []byte("kind: NodeConfig\n")}},
		"script before":   {{MediaType: script, Content: []byte("#!/bin/sh\necho hello\n")}, {MediaType: config, Content: []byte("kind: NodeConfig")}},
		"not ASCII":       {{MediaType: script, Content: []byte("#!/bin/sh\necho Grüße\n")}},
		"other newlines":  {{MediaType: script, Content: []byte("#!/bin/sh\r\necho a\r\n")}},
		"long line":       {{MediaType: script, Content: []byte("#!/bin/sh\n# " + strings.Repeat("x", 2000))}},
		"a boundary":      {{MediaType: script, Content: []byte("#!/bin/sh\ncat <<E\n--muster-00\n--B--\nE\n")}},
		"blank at an end": {{MediaType: script, Content: []byte("#!/bin/sh \n\n\n")}},
	} {
		t.Run(name, func(t *testing.T) { roundTrip(t, parts) })
	}
}

func FuzzWrite(f *testing.F) {
	f.Add("#!/bin/sh\n", "kind: NodeConfig\n")
	f.Add("#!/bin/sh\r\n", "a: \xff\x00")
	f.Fuzz(func(t *testing.T, script, config string) {
		parts := []userdata.Part{{MediaType: "text/x-shellscript", Content: []byte("#!" + script)}, {MediaType: "application/node.eks.aws", Content: []byte("# " + config)}}
		roundTrip(t, parts)
	})
}
