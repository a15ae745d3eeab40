// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"muster.dev/muster/internal/plane/tokenkeys"
)

// api answers the account: which public keys there are, and that another one is to sign. No private key is in any
// answer.
type api struct {
	keys *tokenkeys.Keeper
	now  func() time.Time
	log  *slog.Logger
}

func (a api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+tokenkeys.PathKeys, a.list)
	mux.HandleFunc("POST "+tokenkeys.PathRotate, a.rotate)
	return mux
}

func (a api) list(w http.ResponseWriter, _ *http.Request) {
	ring, err := a.keys.Ring()
	a.answer(w, ring, err)
}

func (a api) rotate(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send an order as application/json", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tokenkeys.MaxOrder))
	if err != nil {
		http.Error(w, "the order cannot be read", http.StatusBadRequest)
		return
	}
	order, err := tokenkeys.ParseOrder(raw)
	if err != nil {
		http.Error(w, "the order is not one: "+err.Error(), http.StatusBadRequest)
		return
	}
	ring, added, err := a.keys.Rotate(order, a.now())
	if added {
		a.log.Info("published another key", "key", ring.Last().ID, "signs", ring.Last().Signs)
	}
	a.answer(w, ring, err)
}

func (a api) answer(w http.ResponseWriter, ring tokenkeys.Ring, err error) {
	var raw []byte
	if err == nil {
		raw, err = tokenkeys.FormatPublic(ring)
	}
	if refused, ok := errors.AsType[*tokenkeys.Refused](err); ok {
		http.Error(w, refused.Reason, http.StatusConflict)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // a lost caller asks again
}
