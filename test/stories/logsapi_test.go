// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"time"
)

const clusterLogs = "/aws/eks/muster/cluster"

// foundEvents is what get-log-events and filter-log-events print.
type foundEvents struct {
	Events []struct {
		Message, EventID string
		Timestamp        int64
	}
	NextForwardToken string
}

// cloudWatch has the AWS CLI query and read the logs of the cluster, and keep and delete logs of somebody else's.
func (l *logStore) cloudWatch() {
	l.t.Helper()
	ago := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(-d).Unix()) }
	started := l.answerOf("start-query", "--log-group-name", clusterLogs, "--start-time", ago(24*time.Hour), "--end-time", ago(-time.Hour),
		"--query-string", `filter @logStream like /^kube-controller-manager/ | fields @timestamp, @message | sort @timestamp asc | filter @message like "--controller" | limit 10000`)
	if !strings.Contains(started, `FLAG: --controllers=`) {
		l.t.Errorf("the controllers by the AWS CLI: %.500s", started)
	}
	l.refusedBy("MalformedQueryException", "start-query", "--log-group-name", clusterLogs, "--start-time", "1", "--end-time", "2", "--query-string", "filtre x")
	l.refusedBy("ResourceNotFoundException", "start-query", "--log-group-name", "none", "--start-time", "1", "--end-time", "2", "--query-string", "limit 1")
	l.refusedBy("ResourceNotFoundException", "get-query-results", "--query-id", "12345678-1234-4234-8234-123456789012")

	var streams struct {
		LogStreams []struct{ LogStreamName string }
	}
	l.mustAWS(&streams, "logs", "describe-log-streams", "--log-group-name", clusterLogs, "--log-stream-name-prefix", "kube-apiserver-audit-")
	if len(streams.LogStreams) == 0 {
		l.t.Fatal("the audit log is no log stream")
	}
	l.pagesOfAudit()
	var page foundEvents
	l.mustAWS(&page, "logs", "get-log-events", "--log-group-name", clusterLogs, "--log-stream-name", streams.LogStreams[0].LogStreamName, "--limit", "3")
	if len(page.Events) != 3 || page.NextForwardToken == "" {
		l.t.Errorf("the last three events: %+v", page)
	}
	l.ofOthers()
}

// pagesOfAudit reads approvals of CSRs out of the audit log by small pages, and compares their ids.
func (l *logStore) pagesOfAudit() {
	l.t.Helper()
	var page foundEvents
	l.mustAWS(&page, "logs", "filter-log-events", "--log-group-name", clusterLogs, "--log-stream-name-prefix", "kube-apiserver-audit-",
		"--filter-pattern", `{ $.objectRef.subresource = "approval" && $.verb = "update" }`, "--page-size", "2")
	want := l.count(`"objectRef.subresource":="approval" verb:="update"`)
	seen := map[string]bool{}
	for _, e := range page.Events {
		seen[e.EventID] = true
	}
	if len(page.Events) == 0 || len(page.Events) != len(seen) || len(seen) > want {
		l.t.Errorf("%d events with %d ids, and the log store has %d", len(page.Events), len(seen), want)
	}
}

// ofOthers keeps events of a program, and deletes them.
func (l *logStore) ofOthers() {
	l.t.Helper()
	l.mustAWS(nil, "logs", "create-log-group", "--log-group-name", "shop")
	l.mustAWS(nil, "logs", "create-log-stream", "--log-group-name", "shop", "--log-stream-name", "web")
	now := time.Now().UnixMilli()
	put := func(message string) {
		l.t.Helper()
		now++
		l.mustAWS(nil, "logs", "put-log-events", "--log-group-name", "shop", "--log-stream-name", "web", "--log-events", fmt.Sprintf(`[{"timestamp":%d,"message":%q}]`, now, message))
	}
	put(`{"order":{"items":["apple"]}}`)
	l.kill("log-store")
	put("after the log store was killed")
	var page foundEvents
	l.mustAWS(&page, "logs", "get-log-events", "--log-group-name", "shop", "--log-stream-name", "web", "--start-from-head")
	if len(page.Events) != 2 || page.Events[1].Message != "after the log store was killed" {
		l.t.Errorf("%+v", page.Events)
	}
	if answer := l.answerOf("start-query", "--log-group-names", "shop", clusterLogs, "--start-time", fmt.Sprint(now/1000-60), "--end-time", fmt.Sprint(now/1000+60), "--query-string", "filter order.items.0 = 'apple' | display @log"); !strings.Contains(answer, iamAccount+":shop") {
		l.t.Errorf("two log groups: %s", answer)
	}

	bob := l.user("logs-bob")
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"logs:*","Resource":"arn:aws:logs:*:*:log-group:shop:*"}]}`
	l.mustAWS(nil, "iam", "put-user-policy", "--user-name", "logs-bob", "--policy-name", "shop", "--policy-document", policy)
	l.eventually("who may read one log group may not read another", func() error {
		if _, err := l.aws(l.as(bob), "logs", "filter-log-events", "--log-group-name", "shop"); err != nil {
			return err
		}
		_, err := l.aws(l.as(bob), "logs", "filter-log-events", "--log-group-name", clusterLogs)
		if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			return fmt.Errorf("the other: %w", err)
		}
		return nil
	})

	before := l.count("*")
	l.mustAWS(nil, "logs", "delete-log-group", "--log-group-name", "shop")
	if n := l.count(`"@log":="` + iamAccount + `:shop"`); n != 0 {
		l.t.Errorf("%d events are left of a log group that was deleted", n)
	}
	if after := l.count("*"); after < before-2 {
		l.t.Errorf("%d events of all were there, and are %d", before, after)
	}
}

// answerOf starts a query by the AWS CLI, and returns what it prints of the answer.
func (l *logStore) answerOf(args ...string) (answer string) {
	l.t.Helper()
	var started struct{ QueryID string }
	l.mustAWS(&started, append([]string{"logs"}, args...)...)
	l.eventually("the query is answered", func() error {
		var err error
		if answer, err = l.aws(l.admin, "logs", "get-query-results", "--query-id", started.QueryID, "--output", "json"); err != nil {
			return err
		}
		if !strings.Contains(answer, `"Complete"`) {
			return fmt.Errorf("it is %.300s", answer)
		}
		return nil
	})
	return answer
}

// refusedBy fails the test unless a command of `aws logs` is refused with a code.
func (l *logStore) refusedBy(code string, args ...string) {
	l.t.Helper()
	if out, err := l.aws(l.admin, append([]string{"logs"}, args...)...); err == nil || !strings.Contains(err.Error(), code) {
		l.t.Errorf("%v: %s %v, want %s", args, out, err, code)
	}
}
