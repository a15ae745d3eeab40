// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
)

const requestBlock = "CERTIFICATE REQUEST"

// decodePEM returns the bytes of the one block. encoding/pem skips what stands before a block, whole broken blocks
// included, and leaves what follows to the caller; here both are refused, so there is one way to read the bytes.
func decodePEM(data []byte) ([]byte, error) {
	if len(data) > MaxRequestSize {
		return nil, fmt.Errorf("the request has more than %d bytes, which are the most that are read", MaxRequestSize)
	}
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("-----BEGIN "+requestBlock+"-----")) {
		return nil, errors.New("the request does not start with a PEM block " + requestBlock)
	}
	if n := bytes.Count(data, []byte("-----BEGIN")); n != 1 {
		return nil, fmt.Errorf("the request has %d PEM blocks; it must be exactly one", n)
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("the PEM block cannot be decoded")
	case block.Type != requestBlock:
		return nil, fmt.Errorf("the PEM block is %q; it must be %s", block.Type, requestBlock)
	case len(block.Headers) > 0:
		return nil, errors.New("the PEM block has headers; it must have none")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("%d bytes follow the PEM block; nothing may", len(rest))
	}
	return block.Bytes, nil
}
