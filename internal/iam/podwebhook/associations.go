// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"sync"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/watchfile"
)

// identities is the file of service accounts that have a pod identity association, in the form of the original's.
type identities struct {
	Identities []identity `json:"identities"`
	// Digest is of files that the webhook wrote: SHA-256 of the identities, in hexadecimal digits.
	Digest string `json:"sha256,omitempty"`
}

type identity struct {
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
}

// sum is the digest of the identities.
func (i identities) sum() string {
	raw, err := json.Marshal(i.Identities)
	if err != nil {
		panic("podwebhook: names are plain data and always marshal: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// readIdentities reads the file. An empty one names nobody.
func readIdentities(raw []byte) (map[accountKey]bool, error) {
	var file identities
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("reading the file of pod identity associations: %w", err)
		}
	}
	if file.Digest != "" && file.Digest != file.sum() {
		return nil, errors.New("reading the file of pod identity associations: it is not as it was written: the digest does not fit")
	}
	return file.named()
}

func (i identities) named() (map[accountKey]bool, error) {
	named := map[accountKey]bool{}
	for _, i := range i.Identities {
		if i.Namespace == "" || i.ServiceAccount == "" {
			return nil, fmt.Errorf("reading the file of pod identity associations: namespace %.80q and service account %.80q must not be empty", i.Namespace, i.ServiceAccount)
		}
		named[accountKey{i.Namespace, i.ServiceAccount}] = true
	}
	return named, nil
}

// associations are the service accounts with a pod identity association.
type associations struct {
	file watchfile.File
	log  *slog.Logger
	// own says that the webhook writes the file itself, as it is told.
	own bool

	writing sync.Mutex

	mu    sync.Mutex
	named map[accountKey]bool
	told  string
}

// errUntold means that nobody has told the webhook of associations yet.
var errUntold = errors.New("the webhook has not been told of pod identity associations yet")

// look reads the file again. While the file cannot be read, its last content holds. Without the file nobody has an
// association, unless the webhook writes the file itself (own): then the last content holds, too.
func (a *associations) look() {
	raw, err := a.file.Read()
	if errors.Is(err, fs.ErrNotExist) { // nobody has an association yet
		if a.own {
			return
		}
		err = nil
	}
	var named map[accountKey]bool
	switch {
	case err == nil && a.own && len(raw) == 0:
		err = errors.New("reading the file of pod identity associations: it is empty")
	case err == nil:
		named, err = readIdentities(raw)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if a.told != err.Error() {
			a.log.Warn("the file of pod identity associations cannot be read: what it said before holds", "error", err)
		}
		a.told = err.Error()
		return
	}
	a.named, a.told = named, ""
}

func (a *associations) has(namespace, name string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.named[accountKey{namespace, name}]
}

// ready is errUntold for a webhook that is told, and knows nothing yet.
func (a *associations) ready() error {
	if a == nil || !a.own {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.named == nil {
		return errUntold
	}
	return nil
}

// ServeHTTP takes another list, and answers once it is on disk.
func (a *associations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send the service accounts as application/json", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFile/2)) // the file has a digest besides
	if err != nil {
		http.Error(w, "the service accounts cannot be read", http.StatusBadRequest)
		return
	}
	if err := a.take(raw); err != nil {
		status := http.StatusInternalServerError
		if _, wrong := errors.AsType[*wrongList](err); wrong {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// wrongList is what is wrong with a list that the webhook was sent.
type wrongList struct{ error }

// take reads a list strictly, and makes it the one that holds.
func (a *associations) take(raw []byte) error {
	var list identities
	strict, err := kjson.UnmarshalStrict(raw, &list)
	switch {
	case err != nil:
		return &wrongList{err}
	case len(strict) > 0:
		return &wrongList{strict[0]}
	case list.Identities == nil || list.Digest != "":
		return &wrongList{errors.New("identities must be there, and nothing else")}
	}
	named, err := list.named()
	if err != nil {
		return &wrongList{err}
	}
	list.Digest = list.sum()
	content, err := json.Marshal(list)
	if err != nil {
		return err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := atomicfile.Write(a.file.Path, append(content, '\n'), 0o600); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.named, a.told = named, ""
	return nil
}
