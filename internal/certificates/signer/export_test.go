// SPDX-License-Identifier: Apache-2.0

package signer

// PID is the child's, or 0 if there is none that signs.
func (k *PKCS11) PID() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.child == nil {
		return 0
	}
	return k.child.cmd.Process.Pid
}
