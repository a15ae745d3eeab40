// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/logs"
)

const (
	// tailLines and tailBytes are how much of a log is kept, from its end.
	tailLines = 2000
	tailBytes = 256 << 10
	// readTime is how long one log may be read.
	readTime = 10 * time.Second
)

// AddLog adds the end of a log. Of an audit log there is who asked for what and the answer's code, and no body.
func (a *Archive) AddLog(ctx context.Context, name string, source logs.Source) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	kept := &tail{}
	err := logs.Copy(ctx, kept, logs.Config{Sources: []logs.Source{source}, Tail: tailLines})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		a.LeaveOut(name, fmt.Sprintf("the log cannot be read: %v", err))
		return
	}
	text := kept.text()
	if source.Name == logs.AuditName || source.Name == logs.SecurityName {
		text = withoutBodies(text)
	}
	if text == "" {
		return
	}
	if size, _ := source.Size(); size > int64(kept.size()) {
		a.LeaveOut(fmt.Sprintf("earlier lines of %s", name), fmt.Sprintf("of each log the last %d lines are kept, and at most %d KiB; it has %d bytes", tailLines, tailBytes>>10, size))
	}
	a.AddText(name, text)
}

// tail keeps the end of what is written to it.
type tail struct {
	buf []byte
	cut bool
}

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.buf = append(t.buf, data...)
	if over := len(t.buf) - tailBytes; over > tailBytes { // not at each write
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(data), nil
}

func (t *tail) size() int { return min(len(t.buf), tailBytes) }

// text is the end in whole lines.
func (t *tail) text() string {
	end := t.buf
	if over := len(end) - tailBytes; over > 0 {
		end, t.cut = end[over:], true
	}
	if t.cut {
		_, end, _ = bytes.Cut(end, []byte("\n"))
	}
	return strings.ToValidUTF8(string(end), "\uFFFD")
}

// auditEvent is what is kept of an audit.k8s.io/v1 Event: no objects, and no query of its URI, which has the command of
// an exec.
type auditEvent struct {
	AuditID    string          `json:"auditID,omitempty"`
	Stage      string          `json:"stage,omitempty"`
	RequestURI string          `json:"requestURI,omitempty"`
	Verb       string          `json:"verb,omitempty"`
	User       auditUser       `json:"user,omitzero"`
	As         auditUser       `json:"impersonatedUser,omitzero"`
	SourceIPs  []string        `json:"sourceIPs,omitempty"`
	UserAgent  string          `json:"userAgent,omitempty"`
	ObjectRef  json.RawMessage `json:"objectRef,omitempty"`
	Status     auditStatus     `json:"responseStatus,omitzero"`
	Received   string          `json:"requestReceivedTimestamp,omitempty"`
	Finished   string          `json:"stageTimestamp,omitempty"`
}

type auditUser struct {
	Username string   `json:"username,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

type auditStatus struct {
	Code    int    `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// withoutBodies leaves out the bodies of audit events, and lines that are none.
func withoutBodies(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		var e auditEvent
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		e.RequestURI, _, _ = strings.Cut(e.RequestURI, "?")
		if short, err := json.Marshal(e); err == nil {
			b.Write(short)
			b.WriteString("\n")
		}
	}
	return b.String()
}
