// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// load takes an archive. It may take as long as bytes come.
func load(w http.ResponseWriter, r *http.Request, host Host) {
	if r.Header.Get("Content-Type") != archiveType {
		http.Error(w, "send an archive as "+archiveType, http.StatusUnsupportedMediaType)
		return
	}
	ask, err := decode[Load]([]byte(r.Header.Get(loadHeader)))
	if err != nil {
		http.Error(w, shorten(err.Error()), http.StatusBadRequest)
		return
	}
	control := http.NewResponseController(w)
	err = host.Load(r.Context(), ask, &coming{http.MaxBytesReader(w, r.Body, maxArchive), control})
	if late := control.SetWriteDeadline(time.Now().Add(patience)); late != nil {
		return // the connection is gone
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, "the archive is too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		write(w, http.StatusConflict, faultOf(err))
		return
	}
	write(w, http.StatusOK, nothing{})
}

// coming is a body that has patience for each read, and none to keep once it has ended: net/http would end the
// operation.
type coming struct {
	body    io.Reader
	control *http.ResponseController
}

// Read implements [io.Reader].
func (c *coming) Read(into []byte) (int, error) {
	if err := c.control.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, err := c.body.Read(into)
	if errors.Is(err, io.EOF) {
		if err := c.control.SetReadDeadline(time.Time{}); err != nil {
			return n, err
		}
	}
	return n, err
}
