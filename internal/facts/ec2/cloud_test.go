// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cloud speaks EC2's query protocol.
type cloud struct {
	*httptest.Server
	mu        sync.Mutex
	instances []instance
	page      int // instances on one
	calls     []url.Values
	// before may answer in its place.
	before func(call int, w http.ResponseWriter, r *http.Request) bool
}

type instance struct {
	id, private, state string
	rest               string // more XML
}

func newCloud(t *testing.T, instances ...instance) *cloud {
	t.Helper()
	c := &cloud{instances: instances, page: 1000}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r.PostForm)
	if c.before != nil && c.before(len(c.calls), w, r) {
		return
	}
	if r.PostForm.Get("Action") != "DescribeInstances" || !strings.Contains(r.Header.Get("Authorization"), "/us-west-2/ec2/aws4_request") {
		refuse(w, http.StatusForbidden, "UnauthorizedOperation")
		return
	}
	var found []instance
	for _, i := range c.instances {
		if c.matches(i, r.PostForm) {
			found = append(found, i)
		}
	}
	first := 0
	_, _ = fmt.Sscanf(r.PostForm.Get("NextToken"), "from-%d", &first)
	last := min(first+c.page, len(found))
	w.Header().Set("Content-Type", "text/xml")
	_, _ = fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><reservationSet>`)
	for _, i := range found[first:last] {
		_, _ = fmt.Fprintf(w, `<item><reservationId>r-1</reservationId><instancesSet><item><instanceId>%s</instanceId><instanceState><code>0</code><name>%s</name></instanceState>`+
			`<privateDnsName>%s</privateDnsName>%s</item></instancesSet></item>`, i.id, i.state, i.private, i.rest)
	}
	_, _ = fmt.Fprint(w, `</reservationSet>`)
	if last < len(found) {
		_, _ = fmt.Fprintf(w, `<nextToken>from-%d</nextToken>`, last)
	}
	_, _ = fmt.Fprint(w, `</DescribeInstancesResponse>`)
}

// matches applies filters as EC2 does: one of the values of each; * stands for any text.
func (c *cloud) matches(i instance, form url.Values) bool {
	for n := 1; form.Get(fmt.Sprintf("Filter.%d.Name", n)) != ""; n++ {
		have := map[string]string{"private-dns-name": i.private, "instance-id": i.id, "vpc-id": "vpc-1"}[form.Get(fmt.Sprintf("Filter.%d.Name", n))]
		if !slices.ContainsFunc(values(form, n), func(v string) bool { return v == "*" || v == have }) {
			return false
		}
	}
	return true
}

func values(form url.Values, filter int) (all []string) {
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Value.%d", filter, n)); n++ {
		all = append(all, form.Get(fmt.Sprintf("Filter.%d.Value.%d", filter, n)))
	}
	return all
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>%s</Code><Message>of the cloud</Message></Error></Errors><RequestID>r</RequestID></Response>`, code)
}

func (c *cloud) called() []url.Values {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}
