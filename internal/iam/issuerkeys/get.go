// SPDX-License-Identifier: Apache-2.0

package issuerkeys

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/iam/webidentity"
)

// getter gets a document, and how long it may be kept.
type getter func(ctx context.Context, url string) (body []byte, fresh time.Duration, err error)

func newGetter(c Config) getter {
	dialer := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		// After the name was looked up: a name that changes what it stands for gets nowhere, either.
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return c.Refuse(at.Addr().WithZone(""))
	}}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
			TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 16 << 10,
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       timeout,
	}
	return func(ctx context.Context, url string) ([]byte, time.Duration, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, 0, err
		}
		if request.URL.Scheme != "https" {
			return nil, 0, fmt.Errorf("%.200q is not an https URL", url)
		}
		request.Header.Set("Accept", "application/json")
		request.Header.Set("User-Agent", "muster")
		response, err := client.Do(request)
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return nil, 0, fmt.Errorf("%.200s answers %d: it must be 200, without a redirect", url, response.StatusCode)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, webidentity.MaxDocument+1))
		if err != nil {
			return nil, 0, err
		}
		if len(body) > webidentity.MaxDocument {
			return nil, 0, fmt.Errorf("%.200s has more than %d bytes", url, webidentity.MaxDocument)
		}
		return body, freshness(response.Header.Get("Cache-Control")), nil
	}
}

// freshness is the max-age of a Cache-Control header.
func freshness(header string) time.Duration {
	for directive := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return leastFresh
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return defaultFresh
}
