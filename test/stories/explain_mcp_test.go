// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// session is a running muster mcp, to which a story speaks the Model Context Protocol.
type session struct {
	t       *testing.T
	in      io.Writer
	out     *json.Decoder
	request int
}

// call sends a request and returns the result.
func (s *session) call(method string, params, into any) {
	s.t.Helper()
	s.request++
	s.send(map[string]any{"jsonrpc": "2.0", "id": s.request, "method": method, "params": params})
	for {
		var answer struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := s.out.Decode(&answer); err != nil {
			s.t.Fatalf("%s: %v", method, err)
		}
		if answer.ID != s.request { // a notification
			continue
		}
		if err := json.Unmarshal(answer.Result, into); err != nil {
			s.t.Fatalf("%s: %v: %s", method, err, answer.Error)
		}
		return
	}
}

func (s *session) send(message any) {
	s.t.Helper()
	raw, err := json.Marshal(message)
	if err == nil {
		_, err = fmt.Fprintf(s.in, "%s\n", raw)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// tool calls a tool and returns the texts of its answer.
func (s *session) tool(name string, arguments map[string]any) (texts []string, failed bool) {
	s.t.Helper()
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	s.call("tools/call", map[string]any{"name": name, "arguments": arguments}, &result)
	for _, content := range result.Content {
		texts = append(texts, content.Text)
	}
	return texts, result.IsError
}

// assistantAsks asks by muster mcp what the commands say, too.
func assistantAsks(t *testing.T, i *installation, machine string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := i.command(ctx, "mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, in: in, out: json.NewDecoder(out)}
	var hello struct {
		ServerInfo struct {
			Name string `json:"name"`
		} `json:"serverInfo"`
	}
	s.call("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "story", "version": "v1"}}, &hello)
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	s.call("tools/list", map[string]any{}, &list)
	if hello.ServerInfo.Name != "muster" || len(list.Tools) != 5 {
		t.Errorf("%+v, %+v", hello, list)
	}
	for tool, test := range map[string]struct {
		arguments map[string]any
		command   []string
		same      []string // members of the answer that are the same each time
	}{
		"explain":    {map[string]any{"kind": "machine", "name": machine}, []string{"explain", "machine", machine, "-o", "json"}, []string{"kind", "name", "verdict", "steps"}},
		"status":     {map[string]any{}, []string{"status", "-o", "json"}, []string{"pid", "stateDir"}},
		"auth_check": {map[string]any{}, []string{"auth", "check", "-o", "json"}, []string{"entries", "problems"}},
	} {
		texts, failed := s.tool(tool, test.arguments)
		if failed || len(texts) == 0 {
			t.Errorf("%s: %q", tool, texts)
			continue
		}
		var told, printed map[string]json.RawMessage
		stdout, _ := i.muster(test.command...)
		if err := json.Unmarshal([]byte(texts[0]), &told); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		for _, member := range test.same {
			if compact(told[member]) != compact(printed[member]) {
				t.Errorf("%s, %s: %s, the command says %s", tool, member, told[member], printed[member])
			}
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if texts, failed := s.tool("explain", map[string]any{"kind": "machine", "name": "--bundle=" + path}); !failed {
		t.Errorf("a flag for a name: %q", texts)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a client wrote a file")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
	reads, _ := i.muster("logs", "reads")
	if !slices.ContainsFunc(strings.Split(reads, "\n"), func(line string) bool {
		return strings.Contains(line, `"with":"muster mcp"`) && strings.Contains(line, `"client":"story v1"`) && strings.Contains(line, machine)
	}) {
		t.Errorf("the read is not recorded: %s", reads)
	}
}

// compact is JSON without spaces, with sorted members.
func compact(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
