// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/http"
	"time"
)

// endpoint takes any answer over TLS: strangers may be refused. Discovery finds out the server's identity.
func endpoint(answer Endpoint, err error) Result {
	const fix = "check the address, the route, and firewalls between here and there (TCP); behind a proxy set HTTPS_PROXY or NO_PROXY"
	switch {
	case err != nil:
		return Result{Status: Fail, Saw: err.Error(), Fix: fix}
	case answer.Status >= http.StatusInternalServerError:
		return Result{
			Status: Warn, Saw: fmt.Sprintf("%s answers over TLS with %d %s", answer.URL, answer.Status, http.StatusText(answer.Status)),
			Fix: "the API server is not well, or this is something in front of it: look there",
		}
	}
	return ok("%s answers over TLS", answer.URL)
}

const (
	// noticeable is a difference between two clocks that are not both kept right.
	noticeable = 15 * time.Second
	// harmful makes fresh certificates not valid yet: signers date them back by five minutes.
	harmful = 5 * time.Minute
)

func clock(answer Endpoint, err error) Result {
	const fix = "set the clock, and have it kept right (timedatectl set-ntp true)"
	switch {
	case err != nil:
		return unknown(fmt.Errorf("the server does not answer"), "see endpoint")
	case answer.Date.IsZero():
		return unknown(fmt.Errorf("the server's answer has no date"), fix)
	}
	// The server tells whole seconds.
	skew := answer.At.Sub(answer.Date).Truncate(time.Second)
	difference, word := skew, "ahead of"
	if skew < 0 {
		difference, word = -skew, "behind"
	}
	saw := fmt.Sprintf("%s %s the server's", difference, word)
	switch {
	case difference >= harmful:
		return Result{Status: Fail, Saw: saw + ": certificates would be expired or not valid yet", Fix: fix}
	case difference >= noticeable:
		return Result{Status: Warn, Saw: saw, Fix: fix}
	}
	return ok("as the server's")
}
