// SPDX-License-Identifier: Apache-2.0

package eventpattern

import (
	"errors"
	"strings"
	"testing"
)

const interruption = `{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"000000000000","time":"2026-01-01T00:00:00Z",
"region":"us-east-1","resources":["arn:aws:ec2:us-east-1a:instance/i-1","other"],"detail":{"instance-id":"i-1","instance-action":"terminate","count":5,"share":0.5,"big":300,
"none":null,"on":true,"empty":[],"address":"10.0.1.7","list":[{"name":"a"},{"name":"b"}]}}`

func TestMatch(t *testing.T) {
	for pattern, want := range map[string]bool{
		// terraform-aws-eks's karpenter module
		`{"source":["aws.health"],"detail-type":["AWS Health Event"]}`:                    false,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`: true,
		`{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`:  false,
		`{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"]}`: false,
		`{"source":["aws.ec2","aws.health"]}`:                                             true,
		`{"resources":["other"]}`:                                                         true,
		`{"resources":["another"]}`:                                                       false,
		`{"detail":{"instance-id":["i-1"]}}`:                                              true,
		`{"detail":{"instance-id":["i-2"]}}`:                                              false,
		`{"detail":{"instance-id":[{"prefix":"i-"}]}}`:                                    true,
		`{"detail":{"instance-id":[{"prefix":"j-"}]}}`:                                    false,
		`{"detail":{"instance-action":[{"suffix":"ate"}]}}`:                               true,
		`{"detail":{"instance-action":[{"prefix":{"equals-ignore-case":"TERM"}}]}}`:       true,
		`{"detail":{"instance-action":[{"suffix":{"equals-ignore-case":"STOP"}}]}}`:       false,
		`{"detail":{"instance-action":[{"equals-ignore-case":"TERMINATE"}]}}`:             true,
		`{"detail":{"instance-action":[{"wildcard":"t*m*e"}]}}`:                           true,
		`{"detail":{"instance-action":[{"wildcard":"t*x*e"}]}}`:                           false,
		`{"detail":{"instance-action":[{"wildcard":"terminate"}]}}`:                       true,
		`{"detail":{"instance-action":[{"anything-but":"stop"}]}}`:                        true,
		`{"detail":{"instance-action":[{"anything-but":["stop","terminate"]}]}}`:          false,
		`{"detail":{"instance-action":[{"anything-but":{"prefix":"term"}}]}}`:             false,
		`{"detail":{"instance-action":[{"anything-but":{"suffix":["op","ng"]}}]}}`:        true,
		`{"detail":{"nothing":[{"anything-but":"stop"}]}}`:                                false,
		`{"detail":{"count":[5]}}`:                                                        true,
		`{"detail":{"count":[5.0]}}`:                                                      true,
		`{"detail":{"big":[3e2]}}`:                                                        true,
		`{"detail":{"count":["5"]}}`:                                                      false,
		`{"detail":{"count":[{"numeric":[">",0,"<=",5]}]}}`:                               true,
		`{"detail":{"count":[{"numeric":["<",5]}]}}`:                                      false,
		`{"detail":{"share":[{"numeric":["=",0.5]}]}}`:                                    true,
		`{"detail":{"instance-id":[{"numeric":["=",1]}]}}`:                                false,
		`{"detail":{"address":[{"cidr":"10.0.1.0/24"}]}}`:                                 true,
		`{"detail":{"address":[{"cidr":"10.0.2.0/24"}]}}`:                                 false,
		`{"detail":{"none":[null]}}`:                                                      true,
		`{"detail":{"nothing":[null]}}`:                                                   false,
		`{"detail":{"on":[true]}}`:                                                        true,
		`{"detail":{"on":["true"]}}`:                                                      false,
		`{"detail":{"on":[{"exists":true}]}}`:                                             true,
		`{"detail":{"on":[{"exists":false}]}}`:                                            false,
		`{"detail":{"nothing":[{"exists":false}]}}`:                                       true,
		`{"detail":{"empty":[{"exists":true}]}}`:                                          false,
		`{"nothing":{"inner":[{"exists":false}]}}`:                                        true,
		`{"nothing":{"inner":["x"]}}`:                                                     false,
		`{"detail":[{"exists":true}]}`:                                                    false, // leaves alone exist
		`{"detail":{"list":{"name":["b"]}}}`:                                              true,
		`{"detail":{"list":{"name":["c"]}}}`:                                              false,
		`{"$or":[{"source":["aws.health"]},{"detail":{"count":[5]}}]}`:                    true,
		`{"$or":[{"source":["aws.health"]},{"detail":{"count":[6]}}]}`:                    false,
		`{"source":["aws.ec2"],"detail":{"$or":[{"count":[6]},{"instance-id":["i-1"]}]}}`: true,
		`{"source":["aws.ec2"],"account":["111111111111"]}`:                               false,
	} {
		p, err := Parse(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if got, err := p.Match(eventOf(t, interruption)); err != nil || got != want {
			t.Errorf("%s: %v, %v", pattern, got, err)
		}
	}
	if got, err := (Pattern{}).Match(eventOf(t, interruption)); got || err != nil {
		t.Error("no pattern matches")
	}
}

func eventOf(t *testing.T, text string) Event {
	t.Helper()
	event, err := ReadEvent([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// Each * stands for any characters, and what \ stands before is no *.
func TestWildcards(t *testing.T) {
	for pattern, texts := range map[string]map[string]bool{
		`a*b`:      {"ab": true, "axxb": true, "abx": false},
		`\\**`:     {"*": true, "*x": true, "x": false},
		`*\\*`:     {"*": true, "x*": true, "x": false},
		`*\\\\*`:   {`a\\b`: true, "ab": false},
		`a*b*c`:    {"abc": true, "a-b-c": true, "acb": false},
		`\\*\\*x*`: {"**xy": true, "x": false},
	} {
		p, err := Parse(`{"a":[{"wildcard":"` + pattern + `"}]}`)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		for text, want := range texts {
			if got, err := p.Match(eventOf(t, `{"a":"`+text+`"}`)); err != nil || got != want {
				t.Errorf("%s and %s: %v, %v", pattern, text, got, err)
			}
		}
	}
}

// A pattern of many values and an event of many take a bounded time, whatever the patterns are.
func TestWorkIsBounded(t *testing.T) {
	p, err := Parse(`{"a":[` + strings.Repeat("2,", 1500) + `3]}`)
	if err != nil {
		t.Fatal(err)
	}
	event := eventOf(t, `{"a":[`+strings.Repeat("1,", 100_000)+`1]}`)
	for range 300 {
		if _, err := p.Match(event); !errors.Is(err, ErrWork) {
			t.Fatalf("matched: %v", err)
		}
	}
	if event.work.left != -1 {
		t.Errorf("%d comparisons beyond the bound", -event.work.left)
	}
	if got, err := p.Match(eventOf(t, `{"a":3}`)); !got || err != nil {
		t.Errorf("another event: %v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for pattern, says := range map[string]string{
		``:                                                "not JSON",
		`[]`:                                              "must be a JSON object",
		`{}`:                                              "at least one field",
		`{"source":"aws.ec2"}`:                            "$.source: it must be a list",
		`{"source":[]}`:                                   "an empty list",
		`{"source":[["a"]]}`:                              "list within a list",
		`{"detail":{}}`:                                   "$.detail: an empty object",
		`{"source":["a"]} {}`:                             "more than one JSON value",
		`{"source":["a"],"source":["b"]}`:                 "there twice",
		`{"source":[{"regex":"a.*"}]}`:                    `"regex"`,
		`{"source":[{"prefix":"a","x":1}]}`:               "one field: it has 2",
		`{"source":[{}]}`:                                 "one field: it has 0",
		`{"source":[{"prefix":1}]}`:                       "prefix must be a text",
		`{"source":[{"prefix":{"suffix":""}}]}`:           "equals-ignore-case",
		`{"source":[{"exists":"yes"}]}`:                   "exists must be true or false",
		`{"n":[{"numeric":[">"]}]}`:                       "numeric must be a list",
		`{"n":[{"numeric":["~",1]}]}`:                     "numeric has pairs",
		`{"n":[{"numeric":[">",1,">",2]}]}`:               "a lower and an upper one",
		`{"n":[{"numeric":["=",1,"<",2]}]}`:               "a lower and an upper one",
		`{"n":[1e999999999]}`:                             "too many digits",
		`{"n":[{"cidr":"10.0.0.0"}]}`:                     "range of addresses",
		`{"n":[{"wildcard":"a**b"}]}`:                     "beside each other",
		`{"n":[{"wildcard":"**"}]}`:                       "beside each other",
		`{"n":[{"wildcard":"a\\b"}]}`:                     "stands before neither",
		`{"n":[{"anything-but":[]}]}`:                     "an empty list",
		`{"n":[{"anything-but":true}]}`:                   "texts or numbers",
		`{"n":[{"anything-but":{"exists":true}}]}`:        `"exists"`,
		`{"$or":[{"a":["b"]}]}`:                           "at least two",
		`{"$or":[["a"],["b"]]}`:                           "an alternative is an object",
		`{"a":["` + strings.Repeat("x", MaxBytes) + `"]}`: "there may be 4096",
		strings.Repeat(`{"a":`, 40) + `["b"]` + strings.Repeat(`}`, 40): "nested deeper",
	} {
		if _, err := Parse(pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, want %q", pattern, err, says)
		}
	}
}

// Whatever a pattern is, reading and matching it ends, and what was read matches the same twice.
func FuzzPattern(f *testing.F) {
	f.Add(`{"source":["aws.ec2"],"detail":{"n":[{"numeric":[">",0,"<=",5]}]}}`, interruption)
	f.Add(`{"$or":[{"a":[{"exists":false}]},{"b":[{"wildcard":"*x*"}]}]}`, `{"b":"axb"}`)
	f.Add(`{"a":[{"anything-but":{"prefix":["x"]}}]}`, `{"a":[[["y"]]]}`)
	f.Fuzz(func(t *testing.T, pattern, event string) {
		p, err := Parse(pattern)
		if err != nil {
			return
		}
		one, err := ReadEvent([]byte(event))
		if err != nil {
			return
		}
		first, err := p.Match(one)
		if err != nil {
			return
		}
		if again, err := p.Match(one); err == nil && again != first {
			t.Errorf("%v and then %v", first, again)
		}
	})
}
