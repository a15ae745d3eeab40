// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/refusalcause"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// tailLines is how many lines from the end of a log are read: of the audit log of a cluster with 500 nodes, some seconds.
	tailLines = 5000
	// tailBytes is how much of a log is read at most, from its end. A machine writes its own as large as its disk.
	tailBytes = 32 << 20
	// keptLines is how many lines are kept as evidence, the newest.
	keptLines = 200
	// keptBytes is how much of a line is kept.
	keptBytes = 2048
)

// HostLogs are the logs in a state directory.
type HostLogs struct {
	Dir statedir.Dir
	// Now is the moment of the decision.
	Now time.Time
}

// Kubelet implements [Logs]. The lines are a machine's own word.
func (h HostLogs) Kubelet(ctx context.Context, machine string, since time.Time) ([]diagnosis.Evidence, error) {
	return h.read(ctx, logs.Machine(h.Dir, machine), "kubelet", since, func(line []byte) (diagnosis.Evidence, bool) {
		return KubeletLine(line, "machine/"+machine, "muster logs "+machine+" --component kubelet")
	})
}

// Refused implements [Logs].
func (h HostLogs) Refused(ctx context.Context, cluster, node string, since time.Time) ([]diagnosis.Evidence, error) {
	return h.read(ctx, h.ofCluster(cluster), logs.AuditName, since, func(line []byte) (diagnosis.Evidence, bool) { return auditLine(line, node) })
}

// Tokens implements [Logs]. The newest token says how things are now, so that its line alone counts, and is no
// evidence if the machine was let in.
func (h HostLogs) Tokens(ctx context.Context, cluster, machine string, since time.Time) ([]diagnosis.Evidence, error) {
	found, err := h.read(ctx, h.ofCluster(cluster), "authenticator", since, func(line []byte) (diagnosis.Evidence, bool) { return tokenLine(line, machine) })
	newest := found[max(0, len(found)-1):]
	return slices.DeleteFunc(newest, func(e diagnosis.Evidence) bool { return !e.Trouble }), err
}

func (h HostLogs) ofCluster(cluster string) []logs.Source {
	return logs.ClusterComponents(h.Dir.Cluster(v1alpha1.ClusterSlug(cluster)))
}

// read reads the last lines of the logs of a name. A log that is not there yet has no lines.
func (h HostLogs) read(ctx context.Context, sources []logs.Source, name string, since time.Time, take func(line []byte) (diagnosis.Evidence, bool)) ([]diagnosis.Evidence, error) {
	var found []diagnosis.Evidence
	for _, source := range sources {
		if source.Name != name {
			continue
		}
		err := h.lines(ctx, source, logs.Config{Since: since, TailBytes: tailBytes}, func(line []byte, at time.Time) {
			if e, ok := take(line); ok && !at.Before(since) {
				e.Time = at
				found = append(found, e)
			}
		})
		if err != nil {
			return found, err
		}
	}
	slices.SortStableFunc(found, func(a, b diagnosis.Evidence) int { return a.Time.Compare(b.Time) })
	return found[max(0, len(found)-keptLines):], nil
}

// lines hands on each of the last lines of a log, with its time.
func (h HostLogs) lines(ctx context.Context, source logs.Source, cfg logs.Config, take func(line []byte, at time.Time)) error {
	ref, at := h.Now.In(source.Location), time.Time{}
	out := lineWriter{take: func(line []byte) {
		if stamp, ok := logs.Stamp(line, ref); ok { // a line without one belongs to the line above it
			at = stamp
		}
		take(line, at.UTC())
	}}
	cfg.Sources, cfg.Tail = []logs.Source{source}, tailLines
	if err := logs.Copy(ctx, &out, cfg); err != nil {
		return fmt.Errorf("reading the log %s: %w", source.Name, err)
	}
	return nil
}

// lineWriter hands on each whole line that is written to it.
type lineWriter struct {
	take    func(line []byte)
	partial []byte
}

// Write implements io.Writer. A line is good until take returns.
func (w *lineWriter) Write(data []byte) (int, error) {
	n := len(data)
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			w.partial = append(w.partial, data...)
			return n, nil
		}
		if len(w.partial) > 0 {
			w.take(append(w.partial, data[:end]...))
			w.partial = w.partial[:0]
		} else {
			w.take(data[:end])
		}
		data = data[end+1:]
	}
}

// bounded is the beginning of a text, in whole characters.
func bounded(text string) string {
	if len(text) <= keptBytes {
		return text
	}
	return strings.ToValidUTF8(text[:keptBytes], "") + "…"
}

// mirrorPods is what a kubelet without a Node says ten times a second, as an error and with or without static pods
// (kubernetes, pkg/kubelet/kubelet.go).
const mirrorPods = "Unable to register mirror pod because node is not registered yet"

// KubeletLine returns the evidence in a line of a kubelet's log, without its time: what is an error, or has no header, as
// the last words of a kubelet that ends. The object is what it is about, and look the command that shows the log.
func KubeletLine(line []byte, object, look string) (diagnosis.Evidence, bool) {
	if len(line) == 0 || line[0] == 'I' || bytes.Contains(line, []byte(mirrorPods)) {
		return diagnosis.Evidence{}, false
	}
	return diagnosis.Evidence{
		Source: cause.FromKubelet, Object: object, Look: look, Text: bounded(string(line)), Trouble: line[0] == 'E' || line[0] == 'F',
	}, true
}

// auditEvent is what is read of an audit.k8s.io/v1 Event.
type auditEvent struct {
	Stage string `json:"stage"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
}

// auditLine is the evidence in a line of an audit log: a request of a node that was refused. Not found, a conflict and a
// watch that ends are no refusals.
func auditLine(line []byte, node string) (diagnosis.Evidence, bool) {
	user := "system:node:" + node
	if !bytes.Contains(line, []byte(user)) {
		return diagnosis.Evidence{}, false
	}
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil || e.User.Username != user || e.Stage != "ResponseComplete" {
		return diagnosis.Evidence{}, false
	}
	switch code := e.ResponseStatus.Code; code {
	case 404, 409, 410:
		return diagnosis.Evidence{}, false
	default:
		return diagnosis.Evidence{
			Source: cause.FromAudit, Object: e.ObjectRef.Resource + "/" + e.ObjectRef.Name, Look: "muster logs " + logs.AuditName + " --since 1m",
			Code: strconv.Itoa(code) + "/" + e.ObjectRef.Resource, Text: bounded(e.ResponseStatus.Message),
		}, code >= 400
	}
}

// tokenLine is the evidence in a line of an authenticator's log about a token of a machine's session: of trouble if it
// was refused.
func tokenLine(line []byte, machine string) (diagnosis.Evidence, bool) {
	if !bytes.Contains(line, []byte(machine)) {
		return diagnosis.Evidence{}, false
	}
	fields := logfmt(string(line))
	if fields["instance"] != machine || fields["msg"] != "access denied" {
		return diagnosis.Evidence{}, fields["instance"] == machine && fields["msg"] == "access granted"
	}
	return diagnosis.Evidence{
		Source: cause.FromAuthenticator, Object: "machine/" + machine, Look: "muster logs authenticator --since 1m",
		Code: fields["rule"], Cause: cause.ID(refusalcause.Of(fields["rule"])), Text: bounded(fields["saw"] + "; " + fields["fix"]), Trouble: true,
	}, true
}

// logfmt reads the attributes of a line of log/slog's text handler. The first of a name counts. A value that cannot be
// read ends the line.
func logfmt(line string) map[string]string {
	fields := map[string]string{}
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		key, rest, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(key, ` "`) {
			return fields
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return fields
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return fields
			}
			line = rest[len(quoted):]
		} else {
			value, line, _ = strings.Cut(rest, " ")
		}
		if _, again := fields[key]; !again {
			fields[key] = value
		}
	}
	return fields
}
