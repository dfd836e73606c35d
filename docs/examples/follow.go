// Follows the stream of events, without a gap: after a broken connection, a restart of the server or of this
// program it goes on behind the last event that it has dealt with, whose number it keeps in a file.
//
//	SVC_URL=http://localhost:8080 SVC_KEY=... go run follow.go last-id [Resource=Shop.OrderPlaced]
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

const silence = time.Minute // a comment comes every 15 s

func dealWith(state string, message map[string]string) {
	fmt.Println(message["event"], message["data"])
	if id, ok := message["id"]; ok { // only now: what was under way when we crash comes again
		if err := os.WriteFile(state+".new", []byte(id), 0o600); err != nil {
			log.Fatal(err)
		}
		if err := os.Rename(state+".new", state); err != nil {
			log.Fatal(err)
		}
	}
}

func follow(state, target string) {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	request, err := http.NewRequestWithContext(stop, "GET", target, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Last-Event-ID", "0") // the oldest that is kept
	if last, err := os.ReadFile(state); err == nil {
		request.Header.Set("Last-Event-ID", string(last))
	}
	if key := os.Getenv("SVC_KEY"); key != "" {
		request.Header.Set("Authorization", "apikey "+key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 && answer.StatusCode < 500 {
		text, _ := io.ReadAll(answer.Body)
		log.Fatalf("%s", text)
	}
	message := map[string]string{}
	reader := bufio.NewReader(answer.Body)
	for line, err := reader.ReadString('\n'); err == nil; line, err = reader.ReadString('\n') {
		watch.Reset(silence)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if name != "" {
			message[name] = value
		} else if _, ok := message["data"]; ok {
			dealWith(state, message)
			message = map[string]string{}
		}
	}
}

func main() {
	conditions := ""
	if len(os.Args) > 2 {
		conditions = os.Args[2]
	}
	for ; ; time.Sleep(time.Second) {
		follow(os.Args[1], os.Getenv("SVC_URL")+"/Svc.Event/"+conditions)
	}
}
