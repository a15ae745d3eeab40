// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"muster.dev/muster/internal/explain/readaudit"
)

// connect starts a server whose muster does as the variable says, and returns the SDK's client, connected in memory.
func connect(t *testing.T, as string, change func(*asker)) (*mcp.ClientSession, *[]readaudit.Read) {
	t.Helper()
	t.Setenv(asMuster, as)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var reads []readaudit.Read
	a := &asker{program: self, stateDir: "/state", now: time.Now, by: readaudit.Reader{UID: 7}, busy: make(chan struct{}, mostAtOnce), calls: make(chan struct{}, mostCalls)}
	var mutex sync.Mutex // calls are answered side by side
	a.record = func(r readaudit.Read) error {
		mutex.Lock()
		defer mutex.Unlock()
		reads = append(reads, r)
		return nil
	}
	if change != nil {
		change(a)
	}
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = newServer(a).Run(ctx, ours) // the test ends it
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		<-ended
	})
	return session, &reads
}

// ask calls a tool and returns the texts of its answer.
func ask(t *testing.T, session *mcp.ClientSession, name string, arguments any) (texts []string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", name, arguments, err)
	}
	for _, content := range result.Content {
		text, ok := content.(*mcp.TextContent)
		if !ok {
			t.Fatalf("%s: %T", name, content)
		}
		texts = append(texts, text.Text)
	}
	return texts, result.IsError
}

// There are five tools; each says that it only reads, and takes nothing but its arguments.
func TestTools(t *testing.T) {
	session, _ := connect(t, "echo", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint || *tool.Annotations.DestructiveHint || *tool.Annotations.OpenWorldHint {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil || !strings.Contains(string(schema), `"additionalProperties":false`) {
			t.Errorf("%s: %v, %s", tool.Name, err, schema)
		}
	}
	slices.Sort(names)
	if want := []string{"auth_check", "csr_explain", "explain", "log_query", "status"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
}

// Each call is a command line of muster's, with -o json, in which no value is taken for a flag; it is recorded first.
func TestCommandLines(t *testing.T) {
	session, reads := connect(t, "echo", func(a *asker) { a.cluster = "home" })
	for _, test := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"status", nil, "status --state-dir=/state --cluster=home --output=json"},
		{"explain", map[string]any{}, "explain --state-dir=/state --cluster=home --output=json"},
		{"explain", map[string]any{"kind": "machine", "name": "--bundle=/etc/x"}, "explain --state-dir=/state --cluster=home --output=json -- machine --bundle=/etc/x"},
		{"explain", map[string]any{"kind": "node", "name": "n", "cluster": "blue"}, "explain --state-dir=/state --cluster=home --output=json --cluster=blue -- node n"},
		{"auth_check", map[string]any{"principal": "arn:aws:iam::1:role/r", "instance": "-f"}, "auth check --state-dir=/state --cluster=home --output=json --instance=-f -- arn:aws:iam::1:role/r"},
		{"csr_explain", map[string]any{"name": "csr-1"}, "csr explain --state-dir=/state --cluster=home --output=json -- csr-1"},
		{"log_query", map[string]any{"query": "fields @message\n| limit 3", "since": "2h"}, "logs query --state-dir=/state --cluster=home --output=json --since=2h --limit=100 -- fields @message\n| limit 3"},
		{"log_query", map[string]any{"query": "limit 3", "limit": 5}, "logs query --state-dir=/state --cluster=home --output=json --limit=5 -- limit 3"},
	} {
		texts, failed := ask(t, session, test.tool, test.arguments)
		var printed struct {
			Args []string `json:"args"`
		}
		if failed || len(texts) != 1 || json.Unmarshal([]byte(texts[0]), &printed) != nil || strings.Join(printed.Args, " ") != test.want {
			t.Errorf("%s %v:\n got %s\nwant %s", test.tool, test.arguments, strings.Join(printed.Args, " "), test.want)
		}
		if strings.Contains(strings.Join(texts, ""), "hunter2") || strings.Contains(strings.Join(texts, ""), "0123456789abcdef") {
			t.Errorf("%s shows a secret: %s", test.tool, texts)
		}
		if last := (*reads)[len(*reads)-1]; last.Command != test.want || last.By.UID != 7 || last.Client != "test v1" || last.With != "muster mcp" {
			t.Errorf("recorded %+v", last)
		}
	}
}

// Whatever a client sends, it is refused in one line, nothing runs, and the next call is answered.
func TestHostileInput(t *testing.T) {
	session, reads := connect(t, "echo", nil)
	long := strings.Repeat("x", 20000)
	for _, test := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"explain", map[string]any{"kind": "machine"}, "kind and name go together"},
		{"explain", map[string]any{"name": "x"}, "kind and name go together"},
		{"explain", map[string]any{"kind": "secret", "name": "x"}, "must be one of node, machine"},
		{"explain", map[string]any{"kind": "node", "name": long}, "it has 20000 bytes"},
		{"explain", map[string]any{"kind": "node", "name": "a\nb"}, "control characters"},
		{"explain", map[string]any{"kind": "node", "name": "a\x00b"}, "control characters"},
		{"explain", map[string]any{"kind": "node", "name": "a\x1b[31mb"}, "control characters"},
		{"explain", map[string]any{"kind": "node", "name": "\uFFFD"}, "must be UTF-8"},
		{"explain", map[string]any{"kind": "node", "name": 7}, "must be a string"},
		{"explain", map[string]any{"kind": []string{"node"}, "name": "x"}, "must be a string"},
		{"explain", map[string]any{"bundle": "/etc/passwd"}, `takes no argument "bundle"`},
		{"explain", map[string]any{long: "x"}, "takes no argument"},
		{"auth_check", map[string]any{"filename": "/etc/shadow"}, `takes no argument "filename"`},
		{"csr_explain", map[string]any{}, "the argument name is missing"},
		{"csr_explain", map[string]any{"name": ""}, "the argument name is missing"},
		{"log_query", map[string]any{"query": "x", "limit": 0}, "a whole number from 1 to 1000"},
		{"log_query", map[string]any{"query": "x", "limit": 1e300}, "a whole number from 1 to 1000"},
		{"log_query", map[string]any{"query": "x", "limit": "7"}, "a whole number from 1 to 1000"},
		{"log_query", map[string]any{"query": long}, "may have 10000"},
		{"status", map[string]any{"cluster": "x"}, "it takes: none"},
		{"status", []string{"x"}, "not a JSON object"},
		{"status", "x", "not a JSON object"},
	} {
		texts, failed := ask(t, session, test.tool, test.arguments)
		if !failed || len(texts) != 1 || !strings.Contains(texts[0], test.want) || strings.Contains(texts[0], "\n") || len(texts[0]) > 700 {
			t.Errorf("%s %.80v: %v, %.900q, want %q", test.tool, test.arguments, failed, texts, test.want)
		}
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete"}); err == nil {
		t.Error("a tool that is not there was called")
	}
	if len(*reads) != 0 {
		t.Errorf("recorded %v", *reads)
	}
	if texts, failed := ask(t, session, "status", nil); failed {
		t.Errorf("afterwards: %q", texts)
	}
}

// A command may print JSON, say something besides, end with a code, or fail.
func TestAnswers(t *testing.T) {
	for as, test := range map[string]struct {
		want   string
		failed bool
	}{
		"cause":   {"\"verdict\": \"Cause\"|a |exit code 1", false},
		"refuse":  {`machine "x" not found|exit code 2`, true},
		"large":   {"more than 1024 KiB", true},
		"text":    {"not JSON", true},
		"nothing": {"exit code 0", true},
	} {
		t.Run(as, func(t *testing.T) {
			session, _ := connect(t, as, nil)
			texts, failed := ask(t, session, "explain", nil)
			for i, want := range strings.Split(test.want, "|") {
				if i >= len(texts) || !strings.Contains(texts[i], want) {
					t.Errorf("%d: %q, want %q", i, texts, want)
				}
			}
			if all := strings.Join(texts, ""); failed != test.failed || strings.Contains(all, "hunter2") || strings.Contains(all, "\x1b") {
				t.Errorf("failed: %v, %q", failed, texts)
			}
		})
	}
}

// Where the read cannot be recorded nothing is read; where muster is missing the client is told.
func TestNothingRuns(t *testing.T) {
	session, _ := connect(t, "echo", func(a *asker) { a.record = func(readaudit.Read) error { return errors.New("the disk is full") } })
	if texts, failed := ask(t, session, "status", nil); !failed || !strings.Contains(texts[0], "the disk is full") {
		t.Errorf("%v, %q", failed, texts)
	}
	session, _ = connect(t, "echo", func(a *asker) { a.program = "/nowhere/muster" })
	if texts, failed := ask(t, session, "status", nil); !failed || !strings.Contains(texts[0], "/nowhere/muster") {
		t.Errorf("%v, %q", failed, texts)
	}
}

// Of another cluster there are the tools that work with any.
func TestAnotherCluster(t *testing.T) {
	session, _ := connect(t, "echo", func(a *asker) { a.kubeconfig, a.stateDir = "/k", "" })
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 3 {
		t.Fatalf("%v: %v", err, list)
	}
	if texts, _ := ask(t, session, "csr_explain", map[string]any{"name": "x"}); !strings.Contains(texts[0], "--kubeconfig=/k") {
		t.Errorf("%q", texts)
	}
}

// A client that gives up has its command ended.
func TestGivingUp(t *testing.T) {
	session, _ := connect(t, "hang", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "status"}); err == nil {
		t.Error("a command that hangs was waited for")
	}
}

// A stream of bytes that is no message ends the server, not the machine: lines that never end, depth, torn JSON.
func TestHostileStream(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "",
		"not JSON":     "hello\n",
		"torn":         `{"jsonrpc": "2.0", "id": 1, "method`,
		"deep":         strings.Repeat("[", 100000) + "\n",
		"endless line": strings.Repeat("x", 4<<20),
		"no method":    "{\"jsonrpc\": \"2.0\", \"id\": 1}\n",
		"unknown":      "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"x/y\"}\n",
		"before hello": "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\"name\": \"status\"}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(asMuster, "echo")
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			// Whether it ends with an error depends on the text.
			_ = serve(ctx, []string{"--state-dir", t.TempDir(), "--muster", os.Args[0]}, io.NopCloser(strings.NewReader(text)), nowhere{io.Discard})
			if ctx.Err() != nil {
				t.Error("the server hangs")
			}
		})
	}
	if err := serve(t.Context(), []string{"--nobody"}, nil, nil); err == nil {
		t.Error("a flag that is not there was taken")
	}
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }
