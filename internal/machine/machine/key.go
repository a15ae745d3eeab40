// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"

	"muster.dev/muster/internal/aws/sshkey"
)

// Key is a key pair of EC2 as an instance knows it; the zero value is none.
type Key struct {
	// Name is that of the key pair.
	Name string `json:"name"`
	// Public is its public half in OpenSSH's format, without a comment.
	Public string `json:"public"`
}

// IsZero reports whether there is no key pair.
func (k Key) IsZero() bool { return k == Key{} }

// maxKeyName is EC2's.
const maxKeyName = 255

// Validate checks the key pair: its name and its public key become lines of files.
func (k Key) Validate() error {
	if k.IsZero() {
		return nil
	}
	if k.Name == "" || len(k.Name) > maxKeyName {
		return fmt.Errorf("invalid name of %d bytes: must be of 1 to %d", len(k.Name), maxKeyName)
	}
	for _, b := range []byte(k.Name) {
		if b < ' ' || b > '~' {
			return errors.New("invalid name: must be of printable ASCII characters")
		}
	}
	public, err := sshkey.Parse(k.Public)
	if err != nil {
		return fmt.Errorf("public key of %s: %w", k.Name, err)
	}
	if public.String() != k.Public {
		return fmt.Errorf("public key of %s: must be a type and a key alone, without a comment", k.Name)
	}
	return nil
}
