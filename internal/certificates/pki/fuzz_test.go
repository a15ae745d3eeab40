// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"encoding/pem"
	"testing"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// FuzzParse looks for panics, and for bytes that could be read in another way: what is accepted must be one block,
// encoded the one way there is, apart from white space.
func FuzzParse(f *testing.F) {
	f.Add(pkitest.Kubelet(f, node))
	f.Add(pkitest.Kubelet(f, node, node, "192.168.64.11"))
	f.Add(pkitest.Raw(f, rdns(cn("system:node:a"), cn("system:node:b"), o("system:nodes"))))
	f.Add(pkitest.Raw(f, rdns(cn("system:node:a"), o("system:nodes"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := pki.Parse(data)
		if err != nil {
			return
		}
		if r.CommonName() == "" {
			t.Error("accepted without a common name")
		}
		block, rest := pem.Decode(data)
		if block == nil || len(bytes.TrimSpace(rest)) > 0 || len(block.Headers) > 0 {
			t.Error("accepted something else than one block")
		}
	})
}

// FuzzParseDER spares the fuzzer the PEM armour.
func FuzzParseDER(f *testing.F) {
	for _, data := range [][]byte{pkitest.Kubelet(f, node), pkitest.Kubelet(f, node, node, "192.168.64.11")} {
		block, _ := pem.Decode(data)
		f.Add(block.Bytes)
	}
	f.Fuzz(func(_ *testing.T, der []byte) {
		_, _ = pki.Parse(pkitest.PEM(der))
	})
}
