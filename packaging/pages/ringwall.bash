_ringwall() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="ringwall"
                ;;
            ringwall,akd)
                cmd="ringwall__subcmd__akd"
                ;;
            ringwall,config)
                cmd="ringwall__subcmd__config"
                ;;
            ringwall,console)
                cmd="ringwall__subcmd__console"
                ;;
            ringwall,doctor)
                cmd="ringwall__subcmd__doctor"
                ;;
            ringwall,events)
                cmd="ringwall__subcmd__events"
                ;;
            ringwall,explain)
                cmd="ringwall__subcmd__explain"
                ;;
            ringwall,forecast)
                cmd="ringwall__subcmd__forecast"
                ;;
            ringwall,gate)
                cmd="ringwall__subcmd__gate"
                ;;
            ringwall,help)
                cmd="ringwall__subcmd__help"
                ;;
            ringwall,history)
                cmd="ringwall__subcmd__history"
                ;;
            ringwall,host)
                cmd="ringwall__subcmd__host"
                ;;
            ringwall,join)
                cmd="ringwall__subcmd__join"
                ;;
            ringwall,leave)
                cmd="ringwall__subcmd__leave"
                ;;
            ringwall,metrics)
                cmd="ringwall__subcmd__metrics"
                ;;
            ringwall,operate)
                cmd="ringwall__subcmd__operate"
                ;;
            ringwall,peers)
                cmd="ringwall__subcmd__peers"
                ;;
            ringwall,report)
                cmd="ringwall__subcmd__report"
                ;;
            ringwall,shield)
                cmd="ringwall__subcmd__shield"
                ;;
            ringwall,site)
                cmd="ringwall__subcmd__site"
                ;;
            ringwall,status)
                cmd="ringwall__subcmd__status"
                ;;
            ringwall,top)
                cmd="ringwall__subcmd__top"
                ;;
            ringwall,why)
                cmd="ringwall__subcmd__why"
                ;;
            ringwall__subcmd__akd,help)
                cmd="ringwall__subcmd__akd__subcmd__help"
                ;;
            ringwall__subcmd__akd,run)
                cmd="ringwall__subcmd__akd__subcmd__run"
                ;;
            ringwall__subcmd__akd__subcmd__help,help)
                cmd="ringwall__subcmd__akd__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__akd__subcmd__help,run)
                cmd="ringwall__subcmd__akd__subcmd__help__subcmd__run"
                ;;
            ringwall__subcmd__config,check)
                cmd="ringwall__subcmd__config__subcmd__check"
                ;;
            ringwall__subcmd__config,help)
                cmd="ringwall__subcmd__config__subcmd__help"
                ;;
            ringwall__subcmd__config,show)
                cmd="ringwall__subcmd__config__subcmd__show"
                ;;
            ringwall__subcmd__config__subcmd__help,check)
                cmd="ringwall__subcmd__config__subcmd__help__subcmd__check"
                ;;
            ringwall__subcmd__config__subcmd__help,help)
                cmd="ringwall__subcmd__config__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__config__subcmd__help,show)
                cmd="ringwall__subcmd__config__subcmd__help__subcmd__show"
                ;;
            ringwall__subcmd__console,help)
                cmd="ringwall__subcmd__console__subcmd__help"
                ;;
            ringwall__subcmd__console,login)
                cmd="ringwall__subcmd__console__subcmd__login"
                ;;
            ringwall__subcmd__console__subcmd__help,help)
                cmd="ringwall__subcmd__console__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__console__subcmd__help,login)
                cmd="ringwall__subcmd__console__subcmd__help__subcmd__login"
                ;;
            ringwall__subcmd__gate,block)
                cmd="ringwall__subcmd__gate__subcmd__block"
                ;;
            ringwall__subcmd__gate,flows)
                cmd="ringwall__subcmd__gate__subcmd__flows"
                ;;
            ringwall__subcmd__gate,handover)
                cmd="ringwall__subcmd__gate__subcmd__handover"
                ;;
            ringwall__subcmd__gate,help)
                cmd="ringwall__subcmd__gate__subcmd__help"
                ;;
            ringwall__subcmd__gate,release)
                cmd="ringwall__subcmd__gate__subcmd__release"
                ;;
            ringwall__subcmd__gate,replay)
                cmd="ringwall__subcmd__gate__subcmd__replay"
                ;;
            ringwall__subcmd__gate,respond)
                cmd="ringwall__subcmd__gate__subcmd__respond"
                ;;
            ringwall__subcmd__gate,rules)
                cmd="ringwall__subcmd__gate__subcmd__rules"
                ;;
            ringwall__subcmd__gate,run)
                cmd="ringwall__subcmd__gate__subcmd__run"
                ;;
            ringwall__subcmd__gate__subcmd__help,block)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__block"
                ;;
            ringwall__subcmd__gate__subcmd__help,flows)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__flows"
                ;;
            ringwall__subcmd__gate__subcmd__help,handover)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__handover"
                ;;
            ringwall__subcmd__gate__subcmd__help,help)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__gate__subcmd__help,release)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__release"
                ;;
            ringwall__subcmd__gate__subcmd__help,replay)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__replay"
                ;;
            ringwall__subcmd__gate__subcmd__help,respond)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__respond"
                ;;
            ringwall__subcmd__gate__subcmd__help,rules)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__rules"
                ;;
            ringwall__subcmd__gate__subcmd__help,run)
                cmd="ringwall__subcmd__gate__subcmd__help__subcmd__run"
                ;;
            ringwall__subcmd__help,akd)
                cmd="ringwall__subcmd__help__subcmd__akd"
                ;;
            ringwall__subcmd__help,config)
                cmd="ringwall__subcmd__help__subcmd__config"
                ;;
            ringwall__subcmd__help,console)
                cmd="ringwall__subcmd__help__subcmd__console"
                ;;
            ringwall__subcmd__help,doctor)
                cmd="ringwall__subcmd__help__subcmd__doctor"
                ;;
            ringwall__subcmd__help,events)
                cmd="ringwall__subcmd__help__subcmd__events"
                ;;
            ringwall__subcmd__help,explain)
                cmd="ringwall__subcmd__help__subcmd__explain"
                ;;
            ringwall__subcmd__help,forecast)
                cmd="ringwall__subcmd__help__subcmd__forecast"
                ;;
            ringwall__subcmd__help,gate)
                cmd="ringwall__subcmd__help__subcmd__gate"
                ;;
            ringwall__subcmd__help,help)
                cmd="ringwall__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__help,history)
                cmd="ringwall__subcmd__help__subcmd__history"
                ;;
            ringwall__subcmd__help,host)
                cmd="ringwall__subcmd__help__subcmd__host"
                ;;
            ringwall__subcmd__help,join)
                cmd="ringwall__subcmd__help__subcmd__join"
                ;;
            ringwall__subcmd__help,leave)
                cmd="ringwall__subcmd__help__subcmd__leave"
                ;;
            ringwall__subcmd__help,metrics)
                cmd="ringwall__subcmd__help__subcmd__metrics"
                ;;
            ringwall__subcmd__help,operate)
                cmd="ringwall__subcmd__help__subcmd__operate"
                ;;
            ringwall__subcmd__help,peers)
                cmd="ringwall__subcmd__help__subcmd__peers"
                ;;
            ringwall__subcmd__help,report)
                cmd="ringwall__subcmd__help__subcmd__report"
                ;;
            ringwall__subcmd__help,shield)
                cmd="ringwall__subcmd__help__subcmd__shield"
                ;;
            ringwall__subcmd__help,site)
                cmd="ringwall__subcmd__help__subcmd__site"
                ;;
            ringwall__subcmd__help,status)
                cmd="ringwall__subcmd__help__subcmd__status"
                ;;
            ringwall__subcmd__help,top)
                cmd="ringwall__subcmd__help__subcmd__top"
                ;;
            ringwall__subcmd__help,why)
                cmd="ringwall__subcmd__help__subcmd__why"
                ;;
            ringwall__subcmd__help__subcmd__akd,run)
                cmd="ringwall__subcmd__help__subcmd__akd__subcmd__run"
                ;;
            ringwall__subcmd__help__subcmd__config,check)
                cmd="ringwall__subcmd__help__subcmd__config__subcmd__check"
                ;;
            ringwall__subcmd__help__subcmd__config,show)
                cmd="ringwall__subcmd__help__subcmd__config__subcmd__show"
                ;;
            ringwall__subcmd__help__subcmd__console,login)
                cmd="ringwall__subcmd__help__subcmd__console__subcmd__login"
                ;;
            ringwall__subcmd__help__subcmd__gate,block)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__block"
                ;;
            ringwall__subcmd__help__subcmd__gate,flows)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__flows"
                ;;
            ringwall__subcmd__help__subcmd__gate,handover)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__handover"
                ;;
            ringwall__subcmd__help__subcmd__gate,release)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__release"
                ;;
            ringwall__subcmd__help__subcmd__gate,replay)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__replay"
                ;;
            ringwall__subcmd__help__subcmd__gate,respond)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__respond"
                ;;
            ringwall__subcmd__help__subcmd__gate,rules)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__rules"
                ;;
            ringwall__subcmd__help__subcmd__gate,run)
                cmd="ringwall__subcmd__help__subcmd__gate__subcmd__run"
                ;;
            ringwall__subcmd__help__subcmd__host,confirm)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__confirm"
                ;;
            ringwall__subcmd__help__subcmd__host,enroll)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__enroll"
                ;;
            ringwall__subcmd__help__subcmd__host,forget)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__forget"
                ;;
            ringwall__subcmd__help__subcmd__host,release)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__release"
                ;;
            ringwall__subcmd__help__subcmd__host,reload)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__reload"
                ;;
            ringwall__subcmd__help__subcmd__host,renew)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__renew"
                ;;
            ringwall__subcmd__help__subcmd__host,run)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__run"
                ;;
            ringwall__subcmd__help__subcmd__host__subcmd__enroll,install)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__enroll__subcmd__install"
                ;;
            ringwall__subcmd__help__subcmd__host__subcmd__enroll,request)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__enroll__subcmd__request"
                ;;
            ringwall__subcmd__help__subcmd__host__subcmd__renew,install)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__renew__subcmd__install"
                ;;
            ringwall__subcmd__help__subcmd__host__subcmd__renew,request)
                cmd="ringwall__subcmd__help__subcmd__host__subcmd__renew__subcmd__request"
                ;;
            ringwall__subcmd__help__subcmd__shield,keys)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__keys"
                ;;
            ringwall__subcmd__help__subcmd__shield,run)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__run"
                ;;
            ringwall__subcmd__help__subcmd__shield__subcmd__keys,make)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__make"
                ;;
            ringwall__subcmd__help__subcmd__shield__subcmd__keys,next)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__next"
                ;;
            ringwall__subcmd__help__subcmd__shield__subcmd__keys,retire)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__retire"
                ;;
            ringwall__subcmd__help__subcmd__shield__subcmd__keys,send)
                cmd="ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__send"
                ;;
            ringwall__subcmd__help__subcmd__site,approve)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__approve"
                ;;
            ringwall__subcmd__help__subcmd__site,audit)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__audit"
                ;;
            ringwall__subcmd__help__subcmd__site,backup)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__backup"
                ;;
            ringwall__subcmd__help__subcmd__site,enforce)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__enforce"
                ;;
            ringwall__subcmd__help__subcmd__site,forecast)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__forecast"
                ;;
            ringwall__subcmd__help__subcmd__site,hosts)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__hosts"
                ;;
            ringwall__subcmd__help__subcmd__site,import)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__import"
                ;;
            ringwall__subcmd__help__subcmd__site,init)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__init"
                ;;
            ringwall__subcmd__help__subcmd__site,issue)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__issue"
                ;;
            ringwall__subcmd__help__subcmd__site,list)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__list"
                ;;
            ringwall__subcmd__help__subcmd__site,operator)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__operator"
                ;;
            ringwall__subcmd__help__subcmd__site,pending)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__pending"
                ;;
            ringwall__subcmd__help__subcmd__site,policy)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy"
                ;;
            ringwall__subcmd__help__subcmd__site,recover)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__recover"
                ;;
            ringwall__subcmd__help__subcmd__site,refuse)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__refuse"
                ;;
            ringwall__subcmd__help__subcmd__site,rekey)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__rekey"
                ;;
            ringwall__subcmd__help__subcmd__site,rekey-shared)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__rekey__subcmd__shared"
                ;;
            ringwall__subcmd__help__subcmd__site,renew)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__renew"
                ;;
            ringwall__subcmd__help__subcmd__site,renew-authority)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__renew__subcmd__authority"
                ;;
            ringwall__subcmd__help__subcmd__site,repository)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__repository"
                ;;
            ringwall__subcmd__help__subcmd__site,restore)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__restore"
                ;;
            ringwall__subcmd__help__subcmd__site,revoke)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__revoke"
                ;;
            ringwall__subcmd__help__subcmd__site,serve)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__serve"
                ;;
            ringwall__subcmd__help__subcmd__site,signer)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__signer"
                ;;
            ringwall__subcmd__help__subcmd__site,survey)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__survey"
                ;;
            ringwall__subcmd__help__subcmd__site,token)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__token"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__audit,verify)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__audit__subcmd__verify"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__operator,add)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__add"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__operator,list)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__list"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__operator,remove)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__remove"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__operator,request)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__request"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy,exception)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy,known)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy,legacy)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy,mode)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__mode"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy,show)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__show"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception,remove)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception__subcmd__remove"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception,set)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception__subcmd__set"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known,add)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known__subcmd__add"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known,remove)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known__subcmd__remove"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy,add)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__add"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy,remove)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__remove"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__repository,import)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__repository__subcmd__import"
                ;;
            ringwall__subcmd__help__subcmd__site__subcmd__repository,use)
                cmd="ringwall__subcmd__help__subcmd__site__subcmd__repository__subcmd__use"
                ;;
            ringwall__subcmd__host,confirm)
                cmd="ringwall__subcmd__host__subcmd__confirm"
                ;;
            ringwall__subcmd__host,enroll)
                cmd="ringwall__subcmd__host__subcmd__enroll"
                ;;
            ringwall__subcmd__host,forget)
                cmd="ringwall__subcmd__host__subcmd__forget"
                ;;
            ringwall__subcmd__host,help)
                cmd="ringwall__subcmd__host__subcmd__help"
                ;;
            ringwall__subcmd__host,release)
                cmd="ringwall__subcmd__host__subcmd__release"
                ;;
            ringwall__subcmd__host,reload)
                cmd="ringwall__subcmd__host__subcmd__reload"
                ;;
            ringwall__subcmd__host,renew)
                cmd="ringwall__subcmd__host__subcmd__renew"
                ;;
            ringwall__subcmd__host,run)
                cmd="ringwall__subcmd__host__subcmd__run"
                ;;
            ringwall__subcmd__host__subcmd__enroll,help)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__help"
                ;;
            ringwall__subcmd__host__subcmd__enroll,install)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__enroll,request)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__request"
                ;;
            ringwall__subcmd__host__subcmd__enroll__subcmd__help,help)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__host__subcmd__enroll__subcmd__help,install)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__enroll__subcmd__help,request)
                cmd="ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__request"
                ;;
            ringwall__subcmd__host__subcmd__help,confirm)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__confirm"
                ;;
            ringwall__subcmd__host__subcmd__help,enroll)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__enroll"
                ;;
            ringwall__subcmd__host__subcmd__help,forget)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__forget"
                ;;
            ringwall__subcmd__host__subcmd__help,help)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__host__subcmd__help,release)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__release"
                ;;
            ringwall__subcmd__host__subcmd__help,reload)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__reload"
                ;;
            ringwall__subcmd__host__subcmd__help,renew)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__renew"
                ;;
            ringwall__subcmd__host__subcmd__help,run)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__run"
                ;;
            ringwall__subcmd__host__subcmd__help__subcmd__enroll,install)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__enroll__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__help__subcmd__enroll,request)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__enroll__subcmd__request"
                ;;
            ringwall__subcmd__host__subcmd__help__subcmd__renew,install)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__renew__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__help__subcmd__renew,request)
                cmd="ringwall__subcmd__host__subcmd__help__subcmd__renew__subcmd__request"
                ;;
            ringwall__subcmd__host__subcmd__renew,help)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__help"
                ;;
            ringwall__subcmd__host__subcmd__renew,install)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__renew,request)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__request"
                ;;
            ringwall__subcmd__host__subcmd__renew__subcmd__help,help)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__host__subcmd__renew__subcmd__help,install)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__install"
                ;;
            ringwall__subcmd__host__subcmd__renew__subcmd__help,request)
                cmd="ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__request"
                ;;
            ringwall__subcmd__shield,help)
                cmd="ringwall__subcmd__shield__subcmd__help"
                ;;
            ringwall__subcmd__shield,keys)
                cmd="ringwall__subcmd__shield__subcmd__keys"
                ;;
            ringwall__subcmd__shield,run)
                cmd="ringwall__subcmd__shield__subcmd__run"
                ;;
            ringwall__subcmd__shield__subcmd__help,help)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__shield__subcmd__help,keys)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__keys"
                ;;
            ringwall__subcmd__shield__subcmd__help,run)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__run"
                ;;
            ringwall__subcmd__shield__subcmd__help__subcmd__keys,make)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__make"
                ;;
            ringwall__subcmd__shield__subcmd__help__subcmd__keys,next)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__next"
                ;;
            ringwall__subcmd__shield__subcmd__help__subcmd__keys,retire)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__retire"
                ;;
            ringwall__subcmd__shield__subcmd__help__subcmd__keys,send)
                cmd="ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__send"
                ;;
            ringwall__subcmd__shield__subcmd__keys,help)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help"
                ;;
            ringwall__subcmd__shield__subcmd__keys,make)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__make"
                ;;
            ringwall__subcmd__shield__subcmd__keys,next)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__next"
                ;;
            ringwall__subcmd__shield__subcmd__keys,retire)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__retire"
                ;;
            ringwall__subcmd__shield__subcmd__keys,send)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__send"
                ;;
            ringwall__subcmd__shield__subcmd__keys__subcmd__help,help)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__shield__subcmd__keys__subcmd__help,make)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__make"
                ;;
            ringwall__subcmd__shield__subcmd__keys__subcmd__help,next)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__next"
                ;;
            ringwall__subcmd__shield__subcmd__keys__subcmd__help,retire)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__retire"
                ;;
            ringwall__subcmd__shield__subcmd__keys__subcmd__help,send)
                cmd="ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__send"
                ;;
            ringwall__subcmd__site,approve)
                cmd="ringwall__subcmd__site__subcmd__approve"
                ;;
            ringwall__subcmd__site,audit)
                cmd="ringwall__subcmd__site__subcmd__audit"
                ;;
            ringwall__subcmd__site,backup)
                cmd="ringwall__subcmd__site__subcmd__backup"
                ;;
            ringwall__subcmd__site,enforce)
                cmd="ringwall__subcmd__site__subcmd__enforce"
                ;;
            ringwall__subcmd__site,forecast)
                cmd="ringwall__subcmd__site__subcmd__forecast"
                ;;
            ringwall__subcmd__site,help)
                cmd="ringwall__subcmd__site__subcmd__help"
                ;;
            ringwall__subcmd__site,hosts)
                cmd="ringwall__subcmd__site__subcmd__hosts"
                ;;
            ringwall__subcmd__site,import)
                cmd="ringwall__subcmd__site__subcmd__import"
                ;;
            ringwall__subcmd__site,init)
                cmd="ringwall__subcmd__site__subcmd__init"
                ;;
            ringwall__subcmd__site,issue)
                cmd="ringwall__subcmd__site__subcmd__issue"
                ;;
            ringwall__subcmd__site,list)
                cmd="ringwall__subcmd__site__subcmd__list"
                ;;
            ringwall__subcmd__site,operator)
                cmd="ringwall__subcmd__site__subcmd__operator"
                ;;
            ringwall__subcmd__site,pending)
                cmd="ringwall__subcmd__site__subcmd__pending"
                ;;
            ringwall__subcmd__site,policy)
                cmd="ringwall__subcmd__site__subcmd__policy"
                ;;
            ringwall__subcmd__site,recover)
                cmd="ringwall__subcmd__site__subcmd__recover"
                ;;
            ringwall__subcmd__site,refuse)
                cmd="ringwall__subcmd__site__subcmd__refuse"
                ;;
            ringwall__subcmd__site,rekey)
                cmd="ringwall__subcmd__site__subcmd__rekey"
                ;;
            ringwall__subcmd__site,rekey-shared)
                cmd="ringwall__subcmd__site__subcmd__rekey__subcmd__shared"
                ;;
            ringwall__subcmd__site,renew)
                cmd="ringwall__subcmd__site__subcmd__renew"
                ;;
            ringwall__subcmd__site,renew-authority)
                cmd="ringwall__subcmd__site__subcmd__renew__subcmd__authority"
                ;;
            ringwall__subcmd__site,repository)
                cmd="ringwall__subcmd__site__subcmd__repository"
                ;;
            ringwall__subcmd__site,restore)
                cmd="ringwall__subcmd__site__subcmd__restore"
                ;;
            ringwall__subcmd__site,revoke)
                cmd="ringwall__subcmd__site__subcmd__revoke"
                ;;
            ringwall__subcmd__site,serve)
                cmd="ringwall__subcmd__site__subcmd__serve"
                ;;
            ringwall__subcmd__site,signer)
                cmd="ringwall__subcmd__site__subcmd__signer"
                ;;
            ringwall__subcmd__site,survey)
                cmd="ringwall__subcmd__site__subcmd__survey"
                ;;
            ringwall__subcmd__site,token)
                cmd="ringwall__subcmd__site__subcmd__token"
                ;;
            ringwall__subcmd__site__subcmd__audit,help)
                cmd="ringwall__subcmd__site__subcmd__audit__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__audit,verify)
                cmd="ringwall__subcmd__site__subcmd__audit__subcmd__verify"
                ;;
            ringwall__subcmd__site__subcmd__audit__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__audit__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__audit__subcmd__help,verify)
                cmd="ringwall__subcmd__site__subcmd__audit__subcmd__help__subcmd__verify"
                ;;
            ringwall__subcmd__site__subcmd__help,approve)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__approve"
                ;;
            ringwall__subcmd__site__subcmd__help,audit)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__audit"
                ;;
            ringwall__subcmd__site__subcmd__help,backup)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__backup"
                ;;
            ringwall__subcmd__site__subcmd__help,enforce)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__enforce"
                ;;
            ringwall__subcmd__site__subcmd__help,forecast)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__forecast"
                ;;
            ringwall__subcmd__site__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__help,hosts)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__hosts"
                ;;
            ringwall__subcmd__site__subcmd__help,import)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__import"
                ;;
            ringwall__subcmd__site__subcmd__help,init)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__init"
                ;;
            ringwall__subcmd__site__subcmd__help,issue)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__issue"
                ;;
            ringwall__subcmd__site__subcmd__help,list)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__list"
                ;;
            ringwall__subcmd__site__subcmd__help,operator)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__operator"
                ;;
            ringwall__subcmd__site__subcmd__help,pending)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__pending"
                ;;
            ringwall__subcmd__site__subcmd__help,policy)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy"
                ;;
            ringwall__subcmd__site__subcmd__help,recover)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__recover"
                ;;
            ringwall__subcmd__site__subcmd__help,refuse)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__refuse"
                ;;
            ringwall__subcmd__site__subcmd__help,rekey)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__rekey"
                ;;
            ringwall__subcmd__site__subcmd__help,rekey-shared)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__rekey__subcmd__shared"
                ;;
            ringwall__subcmd__site__subcmd__help,renew)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__renew"
                ;;
            ringwall__subcmd__site__subcmd__help,renew-authority)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__renew__subcmd__authority"
                ;;
            ringwall__subcmd__site__subcmd__help,repository)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__repository"
                ;;
            ringwall__subcmd__site__subcmd__help,restore)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__restore"
                ;;
            ringwall__subcmd__site__subcmd__help,revoke)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__revoke"
                ;;
            ringwall__subcmd__site__subcmd__help,serve)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__serve"
                ;;
            ringwall__subcmd__site__subcmd__help,signer)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__signer"
                ;;
            ringwall__subcmd__site__subcmd__help,survey)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__survey"
                ;;
            ringwall__subcmd__site__subcmd__help,token)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__token"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__audit,verify)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__audit__subcmd__verify"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__operator,add)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__operator,list)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__list"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__operator,remove)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__operator,request)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__request"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy,exception)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy,known)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy,legacy)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy,mode)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__mode"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy,show)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__show"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception,remove)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception,set)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception__subcmd__set"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known,add)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known,remove)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy,add)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy,remove)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__repository,import)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__repository__subcmd__import"
                ;;
            ringwall__subcmd__site__subcmd__help__subcmd__repository,use)
                cmd="ringwall__subcmd__site__subcmd__help__subcmd__repository__subcmd__use"
                ;;
            ringwall__subcmd__site__subcmd__operator,add)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__operator,help)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__operator,list)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__list"
                ;;
            ringwall__subcmd__site__subcmd__operator,remove)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__operator,request)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__request"
                ;;
            ringwall__subcmd__site__subcmd__operator__subcmd__help,add)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__operator__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__operator__subcmd__help,list)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__list"
                ;;
            ringwall__subcmd__site__subcmd__operator__subcmd__help,remove)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__operator__subcmd__help,request)
                cmd="ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__request"
                ;;
            ringwall__subcmd__site__subcmd__policy,exception)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception"
                ;;
            ringwall__subcmd__site__subcmd__policy,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy,known)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known"
                ;;
            ringwall__subcmd__site__subcmd__policy,legacy)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy"
                ;;
            ringwall__subcmd__site__subcmd__policy,mode)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__mode"
                ;;
            ringwall__subcmd__site__subcmd__policy,show)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__show"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception,set)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__set"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help,set)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__set"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,exception)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,known)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,legacy)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,mode)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__mode"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help,show)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__show"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception,set)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception__subcmd__set"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help,add)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__add"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help,remove)
                cmd="ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__remove"
                ;;
            ringwall__subcmd__site__subcmd__repository,help)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__repository,import)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__import"
                ;;
            ringwall__subcmd__site__subcmd__repository,use)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__use"
                ;;
            ringwall__subcmd__site__subcmd__repository__subcmd__help,help)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__help"
                ;;
            ringwall__subcmd__site__subcmd__repository__subcmd__help,import)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__import"
                ;;
            ringwall__subcmd__site__subcmd__repository__subcmd__help,use)
                cmd="ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__use"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        ringwall)
            opts="-h -V --log-json --help --version join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__akd)
            opts="-h --log-json --help run help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__akd__subcmd__help)
            opts="run help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__akd__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__akd__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__akd__subcmd__run)
            opts="-h --config --revert-after --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --revert-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config)
            opts="-h --log-json --help check show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__check)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__help)
            opts="check show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__config__subcmd__show)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__console)
            opts="-h --listen --identity --site --service-name --as --run-dir --history --log-json --help login help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --identity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --site)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --as)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__console__subcmd__help)
            opts="login help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__console__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__console__subcmd__help__subcmd__login)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__console__subcmd__login)
            opts="-h --run-dir --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__doctor)
            opts="-h --config --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__events)
            opts="-f -h --config --interface --json --follow --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__explain)
            opts="-h --config --interface --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__forecast)
            opts="-h --config --interface --since --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate)
            opts="-h --log-json --help run release flows block respond handover replay rules help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__block)
            opts="-h --config --interface --json --vlan --undo --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vlan)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__flows)
            opts="-h --config --interface --json --address --state --limit --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__handover)
            opts="-h --config --interface --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help)
            opts="run release flows block respond handover replay rules help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__block)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__flows)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__handover)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__release)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__replay)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__respond)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__rules)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__release)
            opts="-h --trusted --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --trusted)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__replay)
            opts="-h --read --write --explain --diff --trusted --trusted-mac --trusted-interface --preset --config --null --verify-checksums --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --read)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --write)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --explain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --diff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__respond)
            opts="-h --config --interface --eve-socket --eve --severity --signature --dry-run --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --eve-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --eve)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --severity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --signature)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__rules)
            opts="-h --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__gate__subcmd__run)
            opts="-h --trusted --untrusted --mirror --preset --config --null --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --trusted)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --untrusted)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mirror)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help)
            opts="join leave site operate host akd gate shield status doctor why top console peers events history explain forecast report metrics config help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__akd)
            opts="run"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__akd__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__config)
            opts="check show"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__config__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__config__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__console)
            opts="login"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__console__subcmd__login)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__events)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__explain)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__forecast)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate)
            opts="run release flows block respond handover replay rules"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__block)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__flows)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__handover)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__release)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__replay)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__respond)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__rules)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__gate__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host)
            opts="run confirm release reload forget enroll renew"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__confirm)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__enroll)
            opts="request install"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__enroll__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__enroll__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__release)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__reload)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__renew)
            opts="request install"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__renew__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__renew__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__host__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__join)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__leave)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__metrics)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__operate)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__peers)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield)
            opts="run keys"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__keys)
            opts="make next send retire"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__make)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__next)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__retire)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__keys__subcmd__send)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__shield__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site)
            opts="init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__approve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__audit)
            opts="verify"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__audit__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__backup)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__enforce)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__forecast)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__hosts)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__init)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__issue)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__operator)
            opts="add request list remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__operator__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__pending)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy)
            opts="show legacy known exception mode"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception)
            opts="set remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__exception__subcmd__set)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__known__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__mode)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__policy__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__recover)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__refuse)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__rekey)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__rekey__subcmd__shared)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__renew)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__renew__subcmd__authority)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__repository)
            opts="import use"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__repository__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__repository__subcmd__use)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__restore)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__revoke)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__serve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__signer)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__survey)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__site__subcmd__token)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__top)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__help__subcmd__why)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__history)
            opts="-h --config --file --since --kind --about --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --about)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host)
            opts="-h --log-json --help run confirm release reload forget enroll renew help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__confirm)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll)
            opts="-h --token --interface --service --ip --out --timeout --config --force --json --log-json --help request install help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --token)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__help)
            opts="request install help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__help__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__install)
            opts="-h --key --bundle --out --force --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bundle)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__enroll__subcmd__request)
            opts="-h --name --mac --ip --role --key --out --force --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --role)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__forget)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help)
            opts="run confirm release reload forget enroll renew help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__confirm)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__enroll)
            opts="request install"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__enroll__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__enroll__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__release)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__reload)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__renew)
            opts="request install"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__renew__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__renew__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__release)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__reload)
            opts="-h --config --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew)
            opts="-h --config --through --before --log-json --help request install help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --through)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__help)
            opts="request install help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__help__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__install)
            opts="-h --config --bundle --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bundle)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__renew__subcmd__request)
            opts="-h --config --out --keys --force --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__host__subcmd__run)
            opts="-h --config --revert-after --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --revert-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__join)
            opts="-h --token-file --interface --config --state-dir --run-dir --no-units --identity --mode --migration --append --service --ip --peer --name-server --timeout --revert-after --force --dry-run --yes --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --token-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --identity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mode)
                    COMPREPLY=($(compgen -W "cll sarp" -- "${cur}"))
                    return 0
                    ;;
                --migration)
                    COMPREPLY=($(compgen -W "observe prefer enforce" -- "${cur}"))
                    return 0
                    ;;
                --append)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --peer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name-server)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --revert-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__leave)
            opts="-h --interface --config --state-dir --run-dir --no-units --forget --dry-run --yes --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --run-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__metrics)
            opts="-h --config --interface --out --open-metrics --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__operate)
            opts="-h --service --service-name --as --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --service)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --service-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --as)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__peers)
            opts="-h --config --interface --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__report)
            opts="-h --config --show --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield)
            opts="-h --log-json --help run keys help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help)
            opts="run keys help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__keys)
            opts="make next send retire"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__make)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__next)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__retire)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__keys__subcmd__send)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys)
            opts="-h --log-json --help make next send retire help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help)
            opts="make next send retire help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__make)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__next)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__retire)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__help__subcmd__send)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__make)
            opts="-h --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__next)
            opts="-h --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__retire)
            opts="-h --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__keys__subcmd__send)
            opts="-h --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__shield__subcmd__run)
            opts="-h --config --revert-after --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --revert-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site)
            opts="-h --log-json --help init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__approve)
            opts="-h --dir --fingerprint --all --watch --allow-shared-addresses --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fingerprint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__audit)
            opts="-h --dir --limit --last --before --about --operator --refused --json --log-json --help verify help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --last)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --about)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__audit__subcmd__help)
            opts="verify help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__audit__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__audit__subcmd__help__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__audit__subcmd__verify)
            opts="-h --dir --noted --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --noted)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__backup)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__enforce)
            opts="-h --for --except --anyway --since --dir --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --except)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__forecast)
            opts="-h --dir --group --since --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --group)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help)
            opts="init renew-authority issue renew list revoke token survey import pending approve refuse rekey rekey-shared backup restore recover policy serve signer audit hosts forecast enforce operator repository help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__approve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__audit)
            opts="verify"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__audit__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__backup)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__enforce)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__forecast)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__hosts)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__init)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__issue)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__operator)
            opts="add request list remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__operator__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__pending)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy)
            opts="show legacy known exception mode"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception)
            opts="set remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__exception__subcmd__set)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__known__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__legacy__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__mode)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__policy__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__recover)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__refuse)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__rekey)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__rekey__subcmd__shared)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__renew)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__renew__subcmd__authority)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__repository)
            opts="import use"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__repository__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__repository__subcmd__use)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__restore)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__revoke)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__serve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__signer)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__survey)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__help__subcmd__token)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__hosts)
            opts="-h --dir --json --brief --after --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__import)
            opts="-h --dir --out --by-service --policy --days --valid --dry-run --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --valid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__init)
            opts="-h --dir --name --days --profile --key --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__issue)
            opts="-h --dir --request --name --mac --ip --ip6 --subnet --serves --role --days --dsa-bits --rsa-bits --rsa-hash --out --force --allow-shared-addresses --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip6)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --serves)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --role)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dsa-bits)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rsa-bits)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rsa-hash)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__list)
            opts="-h --dir --all --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator)
            opts="-h --log-json --help add request list remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__add)
            opts="-h --role --request --key --out --days --force --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --role)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help)
            opts="add request list remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__help__subcmd__request)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__list)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__remove)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__operator__subcmd__request)
            opts="-h --key --out --force --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__pending)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy)
            opts="-h --log-json --help show legacy known exception mode help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception)
            opts="-h --log-json --help set remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help)
            opts="set remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__help__subcmd__set)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__remove)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__exception__subcmd__set)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help)
            opts="show legacy known exception mode help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception)
            opts="set remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__exception__subcmd__set)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__known__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy)
            opts="add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__legacy__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__mode)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known)
            opts="-h --log-json --help add remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__add)
            opts="-h --mac --ip --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help)
            opts="add remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__known__subcmd__remove)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy)
            opts="-h --log-json --help add remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__add)
            opts="-h --mac --ip --router --broadcast --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help)
            opts="add remove help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 6 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__legacy__subcmd__remove)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__mode)
            opts="-h --at --for --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__policy__subcmd__show)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__recover)
            opts="-h --dir --identity --apply --anyway --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --identity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__refuse)
            opts="-h --dir --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__rekey)
            opts="-h --dir --request --out --force --days --valid --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --valid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__rekey__subcmd__shared)
            opts="-h --dir --after --grace --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --grace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__renew)
            opts="-h --dir --request --out --days --early --force --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__renew__subcmd__authority)
            opts="-h --dir --days --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository)
            opts="-h --log-json --help import use help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__help)
            opts="import use help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__help__subcmd__use)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__import)
            opts="-h --dir --etcd --ca --certificate --key --unprotected --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__repository__subcmd__use)
            opts="-h --dir --etcd --ca --certificate --key --unprotected --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__restore)
            opts="-h --dir --repository-in-file --key --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__revoke)
            opts="-h --dir --name --keep-shared-keys --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__serve)
            opts="-h --dir --identity --listen --signer --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --identity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --signer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__signer)
            opts="-h --dir --socket --days --late --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --late)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__survey)
            opts="-h --dnsmasq --kea --neigh --table --listen --interface --without-neighbours --oui --csv --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dnsmasq)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kea)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --neigh)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --table)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --oui)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__site__subcmd__token)
            opts="-h --dir --name --csv --mac --ip --subnet --preapproved --by-service --out --out-csv --role --days --valid --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --csv)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mac)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --subnet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out-csv)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --role)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --valid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__status)
            opts="-h --config --interface --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__top)
            opts="-h --config --interface --once --plain --interval --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        ringwall__subcmd__why)
            opts="-h --config --interface --no-probe --json --log-json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --interface)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _ringwall -o nosort -o bashdefault -o default ringwall
else
    complete -F _ringwall -o bashdefault -o default ringwall
fi
