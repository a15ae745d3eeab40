// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/cluster"
	"muster.dev/muster/internal/logs"
	"muster.dev/muster/internal/state"
)

// agentLog is the log of a machine's agent, one of machineLogs.
const agentLog = "node"

// largestLog is how large a log may be that is looked at without being asked for. An agent puts its log aside at 32 MiB; a file with holes could have any size,
// and whoever looks for its last line would read all of it.
const largestLog = 128 << 20

// longestWord bounds what an agent is quoted with.
const longestWord = 300

// agentSays is what keeps a machine's agent from making a node of it, such as user data that cannot be used, and which command shows
// more; empty if nothing does. The service does not know: a machine that has no credential yet tells nobody but its log. Whoever is root on the
// machine can write there, so people read it, and nothing is decided by it.
func agentSays(ctx context.Context, dir state.Dir, id string) string {
	for _, source := range logs.Machine(dir, id) {
		if source.Name != agentLog {
			continue
		}
		if size, _ := source.Size(); size > largestLog {
			return ""
		}
		var last bytes.Buffer
		if err := logs.Copy(ctx, &last, logs.Config{Sources: []logs.Source{source}, Tail: 1}); err != nil {
			return ""
		}
		if wrong := loggedError(last.String()); wrong != "" {
			return fmt.Sprintf("its agent says: %s; more: muster logs %s --component %s", wrong, id, agentLog)
		}
	}
	return ""
}

// attribute is one of a line of slog's TextHandler.
var attribute = regexp.MustCompile(`([^\s="]+)=("(?:[^"\\]|\\.)*"|\S*)`)

// loggedError is what a line of a log says that is an error, in one line; empty for any other line. An agent that waits writes nothing
// more, so an error that is the last line is what it waits with.
func loggedError(line string) string {
	has := map[string]string{}
	for _, found := range attribute.FindAllStringSubmatch(line, -1) {
		key, value := found[1], found[2]
		if plain, err := strconv.Unquote(value); err == nil {
			value = plain
		}
		has[key] = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == '\n' }), "; ")
	}
	if has[slog.LevelKey] != slog.LevelError.String() {
		return ""
	}
	text := has[slog.MessageKey]
	if why := has["error"]; why != "" {
		text += ": " + why
	}
	return shorten(text, longestWord)
}

// sayMore adds what machines' agents say to why machines are not Ready.
func sayMore(ctx context.Context, dir state.Dir, machines []cluster.MachineStatus) {
	for i := range machines {
		if m := &machines[i]; m.Message != "" {
			m.Message = joinText(m.Message, agentSays(ctx, dir, m.Name))
		}
	}
}

// withAgents adds it to the column that says why.
func (g *getCommand) withAgents(ctx context.Context, k kind) kind {
	dir, err := g.open()
	if err != nil {
		return k
	}
	for i, c := range k.columns {
		if c.heading != headingMessage {
			continue
		}
		k.columns[i].cell = func(object client.Object, now time.Time) string {
			message := c.cell(object, now)
			if message == "" {
				return ""
			}
			return joinText(message, agentSays(ctx, dir, object.GetName()))
		}
	}
	return k
}

// joinText puts a second sentence behind a first, if there is one.
func joinText(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}
