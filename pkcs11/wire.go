// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The other half of this is internal/certificates/signer/wire.go of muster.

const (
	version = 1
	maxLine = 16 << 10
)

type greeting struct {
	Version int    `json:"version"`
	Public  []byte `json:"public,omitempty"` // SubjectPublicKeyInfo
	Error   *wrong `json:"error,omitempty"`
}

type request struct {
	ID      uint64 `json:"id"`
	Hash    string `json:"hash"`
	Padding string `json:"padding,omitempty"` // of RSA: pkcs1v15 or pss
	Salt    int    `json:"salt,omitempty"`    // length, of pss
	Digest  []byte `json:"digest"`
}

type answer struct {
	ID        uint64 `json:"id"`
	Signature []byte `json:"signature,omitempty"`
	Error     *wrong `json:"error,omitempty"`
}

type wrong struct {
	Kind    kind   `json:"kind,omitempty"`
	Message string `json:"message"`
}

// readRequest reads one line. io.EOF means that there will be no more.
func readRequest(from *bufio.Reader) (request, error) {
	var r request
	line, err := from.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return r, fmt.Errorf("a line of more than %d bytes", maxLine)
	case err != nil:
		return r, err
	case len(bytes.TrimSpace(line)) == 0:
		return r, errors.New("an empty line")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("reading a request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more than one request on a line")
	}
	return r, nil
}

// put writes one line with one call.
func put(to io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return err
}
