// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"muster.dev/muster/internal/sigv4"
)

// unknownOperation is the code that services of AWS answer with what they do not do.
const unknownOperation = "UnknownOperationException"

// notEKS answers requests that are signed for EKS, which tools send here when their endpoint is set for all services. Its protocol is
// another one (REST-JSON), and who reads that makes nothing of the errors of STS and IAM.
func notEKS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, err := sigv4.ReadHeader(sigv4.Request{Header: r.Header, RawQuery: r.URL.RawQuery})
		if err != nil || signed.Service != "eks" || r.URL.Path == "/" || r.URL.Path == "" { // which EKS has nothing at
			next.ServeHTTP(w, r)
			return
		}
		line := lineOf(r.Context())
		line.api, line.accessKey, line.code = signed.Service, signed.AccessKeyID, unknownOperation
		line.requestID = uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String()
		body, _ := json.Marshal(map[string]string{ // texts alone
			"__type":  unknownOperation,
			"message": "muster serves STS and IAM here, and not EKS: clusters are seen by `muster status`, and `muster kubeconfig --iam` writes what `aws eks update-kubeconfig` would",
		})
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("X-Amzn-Errortype", unknownOperation) // as Go spells x-amzn-ErrorType
		header.Set("X-Amzn-Requestid", line.requestID)
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotFound) // nothing of the server's: SDKs would ask again
		_, _ = w.Write(body)               // whoever asked has gone
	})
}
