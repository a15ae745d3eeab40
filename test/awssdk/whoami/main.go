// SPDX-License-Identifier: Apache-2.0

// Whoami asks STS who the caller is, by AWS's SDK and with nothing but its default configuration: what a program in a
// pod does. With -watch it asks again and again with the credentials that the SDK has, and prints a line with the
// moment whenever the answer is another. With -fresh it gets credentials of its own for each question, and prints each
// second how many questions there were and how many failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

func main() {
	watch := flag.Bool("watch", false, "ask every 50 ms until it is ended")
	fresh := flag.Bool("fresh", false, "ask every 100 ms with new credentials, until it is ended")
	flag.Parse()
	ctx := context.Background()
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		fmt.Fprintln(os.Stderr, "whoami:", err)
		os.Exit(1)
	}
	if *fresh {
		askAfresh(ctx, loaded)
	}
	client, said := sts.NewFromConfig(loaded), ""
	for {
		answer, good := ask(ctx, client)
		if answer != said {
			fmt.Println(time.Now().Format(time.RFC3339Nano), answer)
			said = answer
		}
		if !*watch {
			if !good {
				os.Exit(1)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// askAfresh has the SDK forget its credentials before each question, so that it reads its token again and exchanges
// that.
func askAfresh(ctx context.Context, loaded aws.Config) {
	asked, failed, last := 0, 0, ""
	client := sts.NewFromConfig(loaded)
	for said := time.Now(); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if kept, ok := loaded.Credentials.(*aws.CredentialsCache); ok {
			kept.Invalidate()
		}
		asked++
		if answer, good := ask(ctx, client); !good {
			failed++
			last = ": " + answer
		}
		if time.Since(said) >= time.Second {
			fmt.Printf("%s %d asked, %d failed%s\n", time.Now().Format(time.RFC3339Nano), asked, failed, last)
			said = time.Now()
		}
	}
}

// ask returns the ARN, or why there is none.
func ask(ctx context.Context, client *sts.Client) (answer string, good bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := client.GetCallerIdentity(ctx, nil)
	var code smithy.APIError
	switch {
	case errors.As(err, &code):
		return "refused " + code.ErrorCode() + ": " + code.ErrorMessage(), false
	case err != nil:
		return "failed: " + err.Error(), false
	}
	return "is " + aws.ToString(out.Arn), true
}
