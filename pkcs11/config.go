// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

type config struct {
	module, token   string
	keyLabel, keyID string
	pinFile         string
	sessions        int
}

func (c config) check() error {
	switch {
	case c.module == "" || c.token == "" || c.pinFile == "":
		return errors.New("--module, --token and --pin-file must be given")
	case !filepath.IsAbs(c.module):
		return errors.New("--module must be an absolute path")
	case c.keyLabel == "" && c.keyID == "":
		return errors.New("--key-label or --key-id must be given")
	case c.sessions < 1 || c.sessions > 1024:
		return errors.New("--sessions must be between 1 and 1024")
	}
	if _, err := hex.DecodeString(c.keyID); err != nil {
		return fmt.Errorf("--key-id is not hexadecimal: %w", err)
	}
	return nil
}

// key names the key for people.
func (c config) key() string {
	var parts []string
	if c.keyLabel != "" {
		parts = append(parts, fmt.Sprintf("the label %q", c.keyLabel))
	}
	if c.keyID != "" {
		parts = append(parts, "the ID "+c.keyID)
	}
	return strings.Join(parts, " and ")
}

const maxPIN = 1 << 10

// readPIN reads the PIN anew at each login, and nothing keeps it: it may be another by then.
func readPIN(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("opening the file of the PIN: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("looking at the file of the PIN: %w", err)
	}
	if err := secret(info, self()); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxPIN+1))
	if err != nil {
		return "", fmt.Errorf("reading the file of the PIN: %w", err)
	}
	pin := strings.TrimRight(string(raw), "\r\n")
	if pin == "" || len(raw) > maxPIN || strings.ContainsAny(pin, "\r\n\x00") {
		return "", fmt.Errorf("%s must hold the PIN and nothing else, on one line", name)
	}
	return pin, nil
}

// account is who runs this.
type account struct {
	uid    int
	groups []int
}

func self() account {
	groups, _ := os.Getgroups() // no groups if unknown
	return account{os.Geteuid(), append(groups, os.Getegid())}
}

// secret refuses a file that others can read or have written. A group may read it only where there is no other way:
// kubelet gives files of Secrets to root and to the group of a pod (fsGroup) that does not run as root.
func secret(info os.FileInfo, as account) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	others := info.Mode().Perm() & 0o077
	switch {
	case others == 0 && (int(st.Uid) == as.uid || st.Uid == 0):
		return nil
	case others == 0o040 && st.Uid == 0 && as.uid != 0 && slices.Contains(as.groups, int(st.Gid)):
		return nil
	}
	return fmt.Errorf("its mode is %04o and its owner is %d; nobody else may read or write a PIN: chmod 600", info.Mode().Perm(), st.Uid)
}
