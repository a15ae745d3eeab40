// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"crypto/rand"
	"fmt"
)

// NewID draws the id of an association, which is its name: a- and 17 digits and lower-case letters.
func NewID() (string, error) {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	id := []byte("a-")
	for len(id) < len("a-")+17 {
		drawn := make([]byte, 32)
		if _, err := rand.Read(drawn); err != nil {
			return "", fmt.Errorf("drawing an id: %w", err)
		}
		for _, b := range drawn {
			if int(b) < 256/len(alphabet)*len(alphabet) && len(id) < len("a-")+17 { // each letter is as likely as the others
				id = append(id, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(id), nil
}
