// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"crypto"
	"crypto/elliptic"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many sign at once, more than there are sessions. How fast is for people to read: it is the machine's and the token's.
func TestManySignAtOnce(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ecdsa", "01")
	k.put(rsaKey(t, 2048), "rsa", "02")
	k.config.Module = softHSM(t)
	for _, label := range []string{"ecdsa", "rsa"} {
		for _, workers := range []int{1, 16, 64} {
			k.config.KeyLabel = label
			p := k.open()
			key, digest := k.key(p), digestOf(t, crypto.SHA256, label)
			const each = 512
			var next atomic.Int64
			var group sync.WaitGroup
			begin := time.Now()
			for range workers {
				group.Go(func() {
					for next.Add(1) <= each {
						if err := signs(t.Context(), key, digest, crypto.SHA256); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			t.Logf("%s, %d workers: %.0f signatures/s", label, workers, each/time.Since(begin).Seconds())
			p.Close()
		}
	}
}
