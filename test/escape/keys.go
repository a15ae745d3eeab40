// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func keyAttacks() []attack {
	return []attack{
		{
			"user-keyring", "looks for the host's key in the keyring of its user and reads it",
			"keys of the host's root and of all machines", func(w *world) finding { return keyring(w, unix.KEY_SPEC_USER_KEYRING, "the user keyring") },
		},
		{
			"user-keyring-written", "adds a key to the keyring of its user in which the host's key lies, and takes it away",
			"keys that the host's programs find and use", userKeyringWritten,
		},
		{
			"user-session-keyring", "looks for the host's key in the session keyring of its user and reads it",
			"keys of the host's root", func(w *world) finding {
				return keyring(w, unix.KEY_SPEC_USER_SESSION_KEYRING, "the user's session keyring")
			},
		},
		{
			"session-keyring", "looks for the host's key in the session keyring that it inherited from whoever started the machine",
			"keys of the host's root", func(w *world) finding {
				return keyring(w, unix.KEY_SPEC_SESSION_KEYRING, "the inherited session keyring")
			},
		},
		{
			"key-by-number", "reads the host's key by its serial number",
			"keys of the host's root", keyByNumber,
		},
		{
			"key-quota", "takes more keys than a user of the host has left, as a user of the same number",
			"keys for the host's programs", keyQuota,
		},
	}
}

// keyring looks for the host's key in a keyring. By way of a keyring that it possesses it may do what the possessor
// may.
func keyring(w *world, ring int, name string) finding {
	if w.HostKey == "" {
		return notHere("-host-key is not given")
	}
	serial, err := unix.KeyctlSearch(ring, "user", w.HostKey, unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		if serial, err = unix.KeyctlSearch(ring, "user", w.HostKey, 0); err != nil {
			return heldKey("looking for the host's key in "+name, err)
		}
	}
	return w.readKey(serial, name)
}

// heldKey says what refused a key. A key that is not found is held: the keyring is another one.
func heldKey(step string, err error) finding {
	if errors.Is(err, unix.ENOKEY) {
		return held("%s: %v", step, err)
	}
	return refused(step, err)
}

func (w *world) readKey(serial int, how string) finding {
	buffer := make([]byte, 256)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, serial, buffer, 0)
	if err != nil {
		return heldKey("reading the host's key", err)
	}
	if token := w.Find(buffer[:min(n, len(buffer))]); token != "" {
		return outWith(token, "read the host's key %s by %s", w.HostKey, how)
	}
	return notHere("the key that was found has no token")
}

func userKeyringWritten(w *world) finding {
	if w.HostKey == "" {
		return notHere("-host-key is not given")
	}
	if _, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", w.HostKey, 0); err != nil {
		return heldKey("looking for the host's key in the user keyring", err)
	}
	serial, err := unix.AddKey("user", "muster-escape."+w.mark, []byte("x"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return refused("adding a key to the host's keyring", err)
	}
	if _, err := unix.KeyctlInt(unix.KEYCTL_UNLINK, serial, unix.KEY_SPEC_USER_KEYRING, 0, 0); err != nil {
		return out("left key %d in the host's user keyring: %v", serial, err)
	}
	return out("added a key to the keyring in which the host's key lies, and took it away")
}

func keyByNumber(w *world) finding {
	if w.HostKeySerial == 0 {
		return notHere("-host-key-serial is not given")
	}
	return w.readKey(w.HostKeySerial, fmt.Sprintf("its number %d", w.HostKeySerial))
}

// become makes the calling thread a user's of a number.
func become(uid int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
	if errno != 0 {
		return errno
	}
	return nil
}

func keyQuota(w *world) finding {
	if w.HostKeys == 0 {
		return notHere("-host-keys-left is not given")
	}
	if err := become(w.HostUID); err != nil {
		return refused(fmt.Sprintf("becoming user %d", w.HostUID), err)
	}
	const more = 4
	for i := range w.HostKeys + more {
		_, err := unix.AddKey("user", fmt.Sprintf("muster-escape-quota-%d", i), []byte("x"), unix.KEY_SPEC_THREAD_KEYRING)
		if errors.Is(err, unix.EDQUOT) {
			return out("user %d shares a limit of keys with that user of the host: %d keys were left", w.HostUID, i)
		}
		if err != nil {
			return refused("adding a key", err)
		}
	}
	return held("user %d got %d keys, more than that user of the host has left (%d)", w.HostUID, w.HostKeys+more, w.HostKeys)
}
