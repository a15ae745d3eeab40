// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/console/page"
)

// contents is the policy of what a page may load and do.
const contents = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types muster"

// boundedConn makes room for another connection when it is closed.
type boundedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// guard sets the headers of every answer and refuses requests that no page of the console makes.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": contents, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
			"Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()", "Cache-Control": "no-store",
		} {
			header.Set(name, value)
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(answerTime)) // not of a recorder in a test
		if r.ContentLength != 0 {                                // the server reads the rest of a body before it answers, for whatever the answer is
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
		}
		if !loopback(r.Host) {
			s.refuse(w, r, http.StatusMisdirectedRequest, "This name does not lead to the console", "The console answers to loopback addresses and localhost alone. Open the address that muster console prints.")
			return
		}
		if foreign(r) {
			s.refuse(w, r, http.StatusForbidden, "Another site asked", "The console answers its own pages alone.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, most(r.URL.Path))
		next.ServeHTTP(w, r)
	})
}

// most is how large the body of a request for a path may be.
func most(path string) int64 {
	if path == "/new" || path == "/sign-in" || path == "/api/clusters" || path == "/api/nodegroups" {
		return mostPlan
	}
	return mostBody
}

// loopback reports whether the host of a request is this host's own. A name that somebody else made to lead here is not.
func loopback(host string) bool {
	name := host
	if bare, _, err := net.SplitHostPort(host); err == nil {
		name = bare
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && address.IsLoopback()
}

// foreign reports whether a browser says that a request is of another site's page. A person who follows a link is let
// through, and has no session then, since the cookie stays behind.
func foreign(r *http.Request) bool {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && (changes || r.Header.Get("Sec-Fetch-Site") == "") {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return changes || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// sessionKey is the key of a request's session in its context.
type sessionKey struct{}

// within lets requests of a session through, and records them before anything is read.
func (s *Server) within(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, ok := s.sessions.of(r)
		if !ok {
			s.refuse(w, r, http.StatusUnauthorized, "No session", "The console opens by the address that this command prints. An address is good once. An IAM identity signs in at /sign-in.")
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, session))
		if err := s.record(r, r.Method+" "+r.URL.RequestURI()); err != nil {
			s.refuse(w, r, http.StatusServiceUnavailable, "Nothing is shown", err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), session.before.Sub(s.Now()))
		defer cancel()
		defer context.AfterFunc(session.ctx, cancel)() //nolint:contextcheck // the session's life is not the request's
		next(w, r.WithContext(ctx))                    //nolint:contextcheck // it is made of the request's
	})
}

// record writes down a request before anything is read or made for it.
func (s *Server) record(r *http.Request, what string) error {
	as := ""
	if who := personOf(r.Context()); who != nil {
		as = who.ARN
	}
	return s.Record(as, client(r), what)
}

// frame completes a page's frame for the viewer of a request.
func (s *Server) frame(r *http.Request, f page.Frame) page.Frame {
	f.Flags, f.Token, f.ReadOnly, f.Viewer = s.Flags, sessionOf(r).token, s.ReadOnly, viewerOf(r)
	return f
}

// client is what a browser says of itself.
func client(r *http.Request) string {
	const most = 200
	agent := r.UserAgent()
	return agent[:min(len(agent), most)]
}

// enter begins a session by a ticket. The answer is a page that goes on by itself: a redirection of a link that another
// site had would leave the new cookie behind.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	cookie, ok := s.sessions.enter(r.PathValue("ticket"), r.Host)
	if !ok {
		s.refuse(w, r, http.StatusForbidden, "This address has been used, or is too old", "An address is good once, for ten minutes. The command prints another one.")
		return
	}
	http.SetCookie(w, cookie)
	s.plain(w, http.StatusOK, page.Plain{Heading: "Welcome", Lines: []string{"The console opens."}, Onward: "/"})
}

// leave ends a session.
func (s *Server) leave(w http.ResponseWriter, r *http.Request) {
	session, ok := s.sessions.of(r)
	if !ok || subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(session.token)) != 1 {
		s.refuse(w, r, http.StatusForbidden, "Not signed out", "The request is not one of this console's pages.")
		return
	}
	http.SetCookie(w, s.sessions.leave(r))
	s.plain(w, http.StatusOK, page.Plain{Heading: "Signed out", Lines: []string{"The session is over. The command prints an address for another one."}, Command: "muster console"})
}

// asset answers with a file that pages load. Its path has the hash of what it holds.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	asset, ok := s.pages.Asset(r.URL.Path)
	if !ok {
		s.refuse(w, r, http.StatusNotFound, "Not found", "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", asset.Type)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(asset.Data)
}
