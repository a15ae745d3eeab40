// SPDX-License-Identifier: Apache-2.0

// Package trustfile writes a file of certificate authorities for SSL_CERT_FILE: the system's roots and some more. Go,
// OpenSSL and what builds on them read that variable in place of the system's roots, so a file with the additional
// authorities alone would cut their programs off from everybody else.
//
// It trusts the file that SSL_CERT_FILE names, as the programs do that are to read the result. What happens if the
// system has no roots: the file has the additional authorities alone.
package trustfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Variable is the environment variable that names the file.
const Variable = "SSL_CERT_FILE"

// system are the places of the roots (crypto/x509, root_linux.go): Debian, Alpine, Fedora, openSUSE, Red Hat.
func system() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
}

// header begins the file and is followed by the path that the roots are of.
const header = "# Written by muster: its account's authority after those of "

// Write makes the file at path, of the roots and additional ones. Current is the value of SSL_CERT_FILE so far: the
// roots are those of the file that it names, or the system's if it is empty. If Current is path itself, the roots come
// from the file or the system that they came from when path was written.
func Write(path, current string, additional []byte) error {
	return write(path, current, additional, system())
}

func write(path, current string, additional []byte, places []string) error {
	if current == path {
		current = source(path)
	}
	if current != "" {
		places = []string{current}
	}
	for _, place := range places {
		roots, err := os.ReadFile(place)
		if errors.Is(err, fs.ErrNotExist) && current == "" {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading certificate authorities (%s names %q): %w", Variable, current, err)
		}
		return atomicfile.Replace(path, join(current, roots, additional), 0o600)
	}
	return atomicfile.Replace(path, join(current, nil, additional), 0o600)
}

// theSystem stands for the system's roots, which are looked for again the next time.
const theSystem = "the system"

// join puts a file together.
func join(from string, roots, additional []byte) []byte {
	parts := [][]byte{[]byte(header + cmp.Or(from, theSystem)), bytes.TrimSpace(roots), bytes.TrimSpace(additional)}
	return append(bytes.Join(parts, []byte("\n")), '\n')
}

// source is the file of which the roots in a file are; empty if they are the system's.
func source(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	from, ours := strings.CutPrefix(line, header)
	if !ours || from == theSystem {
		return ""
	}
	return from
}
