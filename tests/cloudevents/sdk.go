// The public SDK for Go, as sdk.js has that for JavaScript: one line of JSON in, one out. Bodies are text.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

type message struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

type question struct {
	Write *event.Event
	Mode  string
	Read  *message
}

func write(e *event.Event, mode string) (*message, error) {
	ctx := binding.WithForceBinary(context.Background())
	if mode == "structured" {
		ctx = binding.WithForceStructured(context.Background())
	}
	request, err := http.NewRequest(http.MethodPost, "http://localhost/", nil)
	if err != nil {
		return nil, err
	}
	if err := cehttp.WriteRequest(ctx, binding.ToMessage(e), request); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	written := &message{Headers: map[string]string{}, Body: string(body)}
	for name := range request.Header {
		written.Headers[name] = request.Header.Get(name)
	}
	return written, nil
}

func read(m *message) (*event.Event, error) {
	header := http.Header{}
	for name, value := range m.Headers {
		header.Set(name, value)
	}
	received := cehttp.NewMessage(header, io.NopCloser(strings.NewReader(m.Body)))
	e, err := binding.ToEvent(context.Background(), received)
	if err != nil {
		return nil, err
	}
	return e, e.Validate()
}

func answer(line []byte) (any, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	if asked.Write != nil {
		return write(asked.Write, asked.Mode)
	}
	return read(asked.Read)
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		said := map[string]any{}
		if result, err := answer(line); err != nil {
			said["error"] = err.Error()
		} else {
			said["result"] = result
		}
		text, err := json.Marshal(said)
		if err != nil {
			text, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		fmt.Println(string(text))
	}
}
