// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Characters that a machine's name or log hides from a person are escapes for the assistant, and stay the same characters.
func TestNothingIsHidden(t *testing.T) {
	session, _ := connect(t, "hostile", nil)
	texts, failed := ask(t, session, "explain", nil)
	if failed || len(texts) != 1 {
		t.Fatalf("%v, %q", failed, texts)
	}
	if strings.ContainsFunc(texts[0], func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) || !strings.Contains(texts[0], `\u202e`) {
		t.Errorf("%q", texts[0])
	}
	var said struct{ Name string }
	if err := json.Unmarshal([]byte(texts[0]), &said); err != nil || said.Name != "node-1\u202e\U000E0049\U000E0047\u200b\u009b31m" {
		t.Errorf("%q, %v", said.Name, err)
	}
}

// Many calls at once are all answered, two commands at a time; more than may wait are refused, and harm nobody.
func TestManyCallsAtOnce(t *testing.T) {
	session, reads := connect(t, "echo", nil)
	var answered, refused, other int
	var mutex sync.Mutex
	var group sync.WaitGroup
	for range 3 * mostCalls {
		group.Go(func() {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "status"})
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err != nil || len(result.Content) == 0:
				other++
			case !result.IsError:
				answered++
			case strings.Contains(result.Content[0].(*mcp.TextContent).Text, "wait already"):
				refused++
			default:
				other++
			}
		})
	}
	group.Wait()
	if other != 0 || answered < mostAtOnce || answered+refused != 3*mostCalls || len(*reads) != answered {
		t.Errorf("%d answered, %d refused, %d failed, %d recorded", answered, refused, other, len(*reads))
	}
	if texts, failed := ask(t, session, "status", nil); failed {
		t.Errorf("afterwards: %q", texts)
	}
}
