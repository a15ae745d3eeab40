// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DefaultDir is where kubelets keep their certificates unless they are told otherwise (--cert-dir).
const DefaultDir = "/var/lib/kubelet/pki"

// Report is what is known about one certificate of a node.
type Report struct {
	Kind Kind `json:"kind"`
	// Link is the path by which the kubelet finds it, and Target what it leads to.
	Link   string `json:"link"`
	Target string `json:"target,omitempty"`
	// Mode is the file's mode, as ls shows it.
	Mode string `json:"mode,omitempty"`

	CommonName   string    `json:"commonName,omitempty"`
	Organization []string  `json:"organization,omitempty"`
	DNSNames     []string  `json:"dnsNames,omitempty"`
	Addresses    []string  `json:"addresses,omitempty"`
	Issuer       string    `json:"issuer,omitempty"`
	Serial       string    `json:"serial,omitempty"`
	NotBefore    time.Time `json:"notBefore,omitzero"`
	NotAfter     time.Time `json:"notAfter,omitzero"`
	KeyMatches   bool      `json:"keyMatches"`

	// Rotation is when the kubelet asks for the next one.
	Rotation Rotation  `json:"rotation,omitzero"`
	Problems []Problem `json:"problems,omitempty"`
}

// Rotation is when a kubelet asks for the next certificate.
type Rotation struct {
	// From and Until are 70 and 90 % of the certificate's life: the kubelet draws a moment in between, anew each time
	// it starts (client-go, util/certificate/certificate_manager.go, jitteryDuration).
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Drawn is that moment if the kubelet's log tells it.
	Drawn time.Time `json:"drawn,omitzero"`
}

// Trouble names what can be wrong with a certificate.
type Trouble string

// The kinds of problems.
const (
	Missing     Trouble = "Missing"
	Unreadable  Trouble = "Unreadable"
	NotALink    Trouble = "NotALink"
	Exposed     Trouble = "Exposed"
	KeyMismatch Trouble = "KeyMismatch"
	Expired     Trouble = "Expired"
	NotYetValid Trouble = "NotYetValid"
	Overdue     Trouble = "Overdue"
)

// Problem is one thing that is wrong, in a sentence with what to do about it.
type Problem struct {
	Trouble Trouble `json:"trouble"`
	Text    string  `json:"text"`
	Fix     string  `json:"fix,omitempty"`
}

func (p Problem) String() string {
	if p.Fix == "" {
		return p.Text
	}
	return p.Text + "; " + p.Fix
}

// NodeName is the node that the certificate names.
func (r Report) NodeName() string { return strings.TrimPrefix(r.CommonName, userPrefix) }

// Has reports whether something in particular is wrong.
func (r Report) Has(trouble Trouble) bool {
	for _, p := range r.Problems {
		if p.Trouble == trouble {
			return true
		}
	}
	return false
}

func (r *Report) problem(trouble Trouble, fix, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Trouble: trouble, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// Read reports on both certificates in a directory: problems stand in the reports.
func Read(dir string, now time.Time) []Report {
	reports := make([]Report, 0, 2)
	for _, kind := range Kinds() {
		reports = append(reports, read(dir, kind, now))
	}
	return reports
}

func read(dir string, kind Kind, now time.Time) Report {
	r := Report{Kind: kind, Link: filepath.Join(dir, kind.link())}
	info, err := os.Lstat(r.Link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.missing(dir)
		return r
	case err != nil:
		r.problem(Unreadable, "run as root", "%v", err)
		return r
	case info.Mode()&fs.ModeSymlink == 0:
		// Upstream's store reads such a file but refuses to replace it: the kubelet goes on until the certificate ends,
		// and no longer.
		r.problem(NotALink, fmt.Sprintf("mv %s %s && ln -s %[2]s %[1]s", r.Link, filepath.Join(dir, kind.prefix()+"-"+now.Format(stamp)+".pem")),
			"%s is a file and not a link, so the kubelet cannot rotate it", r.Link)
	default:
		if r.Target, err = os.Readlink(r.Link); err != nil {
			r.problem(Unreadable, "", "%v", err)
			return r
		}
	}
	raw, mode, err := readFile(r.Link)
	if errors.Is(err, fs.ErrNotExist) {
		r.problem(Missing, "restart the kubelet with a bootstrap token", "%s leads to %s, which does not exist", r.Link, r.Target)
		return r
	}
	if err != nil {
		r.problem(Unreadable, "run as root", "%v", err)
		return r
	}
	r.Mode = mode.String()
	if mode.Perm()&0o077 != 0 {
		r.problem(Exposed, "chmod 600 "+or(r.Target, r.Link), "the file with the key has mode %04o: others than root can use it", mode.Perm())
	}
	pair, err := Parse(raw)
	if err != nil {
		r.problem(Unreadable, "", "%s: %v", or(r.Target, r.Link), err)
		return r
	}
	r.describe(pair, now)
	return r
}

// missing says what it means that there is no link: a store that crashed between removing the old one and renaming the
// new one leaves that; a kubelet that serves a certificate of its own has never had one.
func (r *Report) missing(dir string) {
	if _, err := os.Lstat(filepath.Join(dir, r.Kind.updated())); err == nil {
		r.problem(Missing, "mv "+filepath.Join(dir, r.Kind.updated())+" "+r.Link+", and restart the kubelet", "%s does not exist: a rotation was interrupted", r.Link)
		return
	}
	if r.Kind == Serving {
		if _, err := os.Stat(filepath.Join(dir, "kubelet.crt")); err == nil {
			r.problem(Missing, "set serverTLSBootstrap: true in the kubelet's configuration", "%s does not exist: the kubelet serves kubelet.crt, which it signed itself", r.Link)
			return
		}
		r.problem(Missing, "`kubectl get csr` shows whether it has asked, `muster csr explain` what it waits for", "%s does not exist: the kubelet has got no serving certificate yet", r.Link)
		return
	}
	r.problem(Missing, "it joins with a bootstrap token: `muster join`", "%s does not exist: the node has not joined a cluster", r.Link)
}

func (r *Report) describe(pair Pair, now time.Time) {
	leaf := pair.Leaf()
	r.CommonName, r.Organization, r.DNSNames = leaf.Subject.CommonName, leaf.Subject.Organization, leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		r.Addresses = append(r.Addresses, ip.String())
	}
	r.Issuer, r.Serial = leaf.Issuer.String(), fmt.Sprintf("%x", leaf.SerialNumber)
	r.NotBefore, r.NotAfter, r.KeyMatches = leaf.NotBefore.UTC(), leaf.NotAfter.UTC(), pair.Matches()
	r.Rotation = window(r.NotBefore, r.NotAfter)
	if !r.KeyMatches {
		r.problem(KeyMismatch, "", "the key is not the certificate's: nobody can use the two")
	}
	switch {
	case now.After(r.NotAfter):
		fix := "the kubelet asks for another one as soon as it reaches the API server"
		if r.Kind == Client {
			fix = "a kubelet with an expired certificate cannot renew it: it needs a bootstrap token"
		}
		r.problem(Expired, fix, "it expired at %s", r.NotAfter.Format(time.RFC3339))
	case now.Before(r.NotBefore):
		r.problem(NotYetValid, "set the clock", "it is not valid before %s, and the clock says %s", r.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case now.After(r.Rotation.Until):
		r.problem(Overdue, "`kubectl get csr` and the kubelet's log show why; `muster node rotate` asks now", "the kubelet should have replaced it by %s", r.Rotation.Until.Format(time.RFC3339))
	}
}

func window(from, until time.Time) Rotation {
	life := until.Sub(from)
	return Rotation{From: from.Add(life / 10 * 7), Until: from.Add(life / 10 * 9)}
}

// readFile reads what a link leads to, if it is a file of sensible size.
func readFile(path string) ([]byte, fs.FileMode, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a file", path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxPair+1))
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return raw, info.Mode(), nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
