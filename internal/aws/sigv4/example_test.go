// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/sigv4"
)

// The server derives the key from the scope that the request claims, and verifies the request as it arrived.
func ExampleSigned_Verify() {
	const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	// The client.
	sent, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15", http.NoBody)
	if err != nil {
		fmt.Println(err)
		return
	}
	credentials := aws.Credentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, sent, sigv4.EmptyPayload, "sts", "eu-west-1", at); err != nil {
		fmt.Println(err)
		return
	}

	// The server.
	request := sigv4.Request{
		Method: sent.Method, Host: sent.URL.Host, Path: sent.URL.EscapedPath(), RawQuery: sent.URL.RawQuery,
		Header: sent.Header, PayloadHash: sigv4.EmptyPayload,
	}
	signed, err := sigv4.ReadHeader(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("claims:", signed.Credential)
	fmt.Println("current:", signed.Current(at.Add(time.Minute), 5*time.Minute) == nil)
	key := sigv4.Derive(secret, signed.Scope)
	fmt.Println("verified:", signed.Verify(key, request) == nil)

	request.RawQuery = "Action=GetSessionToken&Version=2011-06-15"
	fmt.Println("changed on the way:", signed.Verify(key, request) == nil)
	// Output:
	// claims: AKIAIOSFODNN7EXAMPLE/20261120/eu-west-1/sts/aws4_request
	// current: true
	// verified: true
	// changed on the way: false
}
