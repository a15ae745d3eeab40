// SPDX-License-Identifier: Apache-2.0

// Package logstoretest has a log store in memory that dies and refuses on demand. It answers as VictoriaLogs v1.52.1 does,
// as far as package logstore asks.
package logstoretest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Row is what was sent: a value for each field.
type Row map[string]string

// Fault is what becomes of a request.
type Fault int

// The faults. The process that dies is there again at once, with the rows of its disk, and with those rows of its memory
// that Server.Survive chooses.
const (
	None       Fault = iota
	Refuses          // 429, as with a full disk; nothing is taken
	DiesBefore       // nothing is taken, and nothing answered
	DiesWithin       // half of the rows are taken
	DiesAfter        // all is done, and nothing is answered
	GivesUp          // of a query: some rows of the answer come, and then the reason
	Stays            // of /metrics: rows stay in memory until it is asked again; of /delete/active_tasks: rows are there until then
)

// Server is a log store.
type Server struct {
	socket      string
	mu          sync.Mutex
	next        func(path string) Fault
	survives    func(Row) bool
	connections map[net.Conn]bool
	memory      []Row
	disk        []Row
	requests    int
	queries     []string
	page        string // of metrics, as it was when they were asked for last
	deleting    []func(Row) bool
}

// Start starts a log store at the path of a unix socket, until the test ends.
func Start(t testing.TB, socket string) *Server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{socket: socket, connections: map[net.Conn]bool{}}
	s.page = s.metrics()
	server := &http.Server{Handler: http.HandlerFunc(s.serve), ConnState: s.changed} //nolint:gosec // its client is a test
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *Server) changed(connection net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.connections[connection] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.connections, connection)
	case http.StateActive, http.StateIdle:
	}
}

// Socket is the path of the unix socket that it listens at.
func (s *Server) Socket() string { return s.socket }

// Disk returns the rows that would be there if the process died now.
func (s *Server) Disk() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Row(nil), s.disk...)
}

// Kill ends the process, and starts it again: its connections end, and rows in memory are gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.memory {
		if s.survives != nil && s.survives(row) {
			s.disk = append(s.disk, row)
		}
	}
	s.memory = nil
	s.requests, s.page = 0, s.metrics()
	for connection := range s.connections {
		_ = connection.Close()
	}
}

// Fail has next asked what becomes of each request from now on, by its path; nil is None for all.
func (s *Server) Fail(next func(path string) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

// Survive has survives report from now on whether a row in memory was written when the process died; nil is no row.
func (s *Server) Survive(survives func(Row) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.survives = survives
}

func (s *Server) fault(path string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		return None
	}
	return s.next(path)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	fault := s.fault(r.URL.Path)
	switch fault {
	case Refuses:
		http.Error(w, "cannot add rows into storage in read-only mode", http.StatusTooManyRequests)
		return
	case DiesBefore:
		s.Kill()
		return
	case None, DiesWithin, DiesAfter, GivesUp, Stays:
	}
	status, body := s.answer(r, fault)
	if fault == DiesWithin || fault == DiesAfter {
		s.Kill()
		return
	}
	w.WriteHeader(status)
	if fault == GivesUp { // as lib/httpserver does once it has sent rows
		some := strings.LastIndex(body[:len(body)/2], "\n") + 1
		_, _ = w.Write([]byte(body[:some] + "\ncannot execute query: took too long\n")) //nolint:gosec // G705: no browser asks a fake
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte(body)) //nolint:gosec // G705: no browser asks a fake
}

// metrics are those that package logstore reads, among others.
func (s *Server) metrics() string {
	return fmt.Sprintf("vl_pending_rows{type=\"storage\"} 0\nvl_pending_rows{type=\"indexdb\"} 7\nvl_storage_rows{type=\"storage/inmemory\"} %d\nvl_storage_rows{type=\"storage/small\"} %d\nvm_http_requests_all_total %d\n",
		len(s.memory), len(s.disk), s.requests)
}

func (s *Server) answer(r *http.Request, fault Fault) (status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	switch r.URL.Path {
	case "/health":
		return http.StatusOK, "OK"
	case "/insert/jsonline":
		if kind := r.Header.Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
			return http.StatusOK, "" // it takes the body for a form, and finds no rows
		}
		rows, err := readRows(r)
		if err != nil {
			return http.StatusBadRequest, err.Error()
		}
		if fault == DiesWithin {
			rows = rows[:len(rows)/2]
		}
		s.memory = append(s.memory, rows...)
		return http.StatusOK, ""
	case "/internal/force_flush":
		return http.StatusOK, ""
	case "/metrics":
		if fault != Stays {
			s.disk, s.memory = append(s.disk, s.memory...), nil
		}
		page := s.page
		s.page = s.metrics()
		return http.StatusOK, page
	case "/select/logsql/query":
		return s.query(r.FormValue("query"))
	case "/delete/run_task":
		return s.deletes(r.FormValue("filter"))
	case "/delete/active_tasks":
		return s.tasks(fault)
	}
	return http.StatusBadRequest, "unsupported path requested"
}

func readRows(r *http.Request) ([]Row, error) {
	if got := r.URL.Query(); got.Get("_stream_fields") != "@log,@logStream" || got.Get("_time_field") != "_time" || got.Get("_msg_field") != "_msg" {
		return nil, fmt.Errorf("not the fields of a row: %v", got)
	}
	var rows []Row
	scanner := bufio.NewScanner(r.Body)
	scanner.Buffer(nil, 1<<20) // -insert.maxLineSizeBytes
	for scanner.Scan() {
		var row Row
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, scanner.Err()
}

// Queries returns the queries that were answered, the first one first.
func (s *Server) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}
